import { describe, expect, it } from 'vitest'
import { brokenLayerRules } from '../../scripts/checks/layers.mjs'

const broken = (files: Record<string, string>) => brokenLayerRules(new Map(Object.entries(files)))

describe('the layer rules', () => {
  it('let through what the design allows', () => {
    expect(
      broken({
        'index.ts': `export { Lease } from './core/lease.ts'\nexport type { Driver } from './driver/index.ts'`,
        'connect.ts': `const load = () => import('./drivers/redis/index.ts')\nconst client = () => import('ioredis')`,
        'core/errors.ts': `export class A extends Error {}`,
        'core/lease.ts': `import { randomUUID } from 'node:crypto'\nimport type { D } from '../driver/index.ts'\n// import x from 'pg'`,
        'driver/index.ts': `import { A } from '../core/errors.ts'`,
        'drivers/redis/index.ts': `import { A } from '../../core/errors.ts'\nimport '../../driver/index.ts'\nimport './locks.ts'`,
        'drivers/redis/locks.ts': `const load = () => import('ioredis')`,
        'scheduler/slot.ts': `import { Cron } from 'croner'\nimport '../core/lease.ts'`,
        'nestjs/index.ts': `import '../index.ts'\nimport '../drivers/redis/index.ts'\nimport './guard.ts'`,
        'nestjs/guard.ts': ``,
      }),
    ).toEqual([])
  })

  it.each([
    ['core', 'core/a.ts', `import '../scheduler/slot.ts'`, 'core imports nothing outside itself and driver'],
    ['core, a package', 'core/a.ts', `import { Cron } from 'croner'`, 'core imports nothing'],
    ['core, a package on demand', 'core/a.ts', `await import('pg')`, 'core imports nothing'],
    ['core, by re-export', 'core/a.ts', `export * from '../drivers/redis/index.ts'`, 'core imports nothing'],
    ['core, by a type', 'core/a.ts', `type A = import('../scheduler/slot.ts').Slot`, 'core imports nothing'],
    ['errors', 'core/errors.ts', `import './lease.ts'`, 'errors import nothing'],
    ['the contracts', 'driver/a.ts', `import '../core/lease.ts'`, 'the driver contracts import nothing'],
    ['another driver', 'drivers/redis/a.ts', `import '../memory/table.ts'`, 'never another driver'],
    ['core from a driver', 'drivers/redis/a.ts', `import '../../core/clock.ts'`, 'a driver imports only'],
    [
      'a client from a driver',
      'drivers/redis/a.ts',
      `import { Redis } from 'ioredis'`,
      'at most by import()',
    ],
    ['a client’s type', 'drivers/redis/a.ts', `import type { Redis } from 'ioredis'`, 'at most by import()'],
    [
      'a driver from the scheduler',
      'scheduler/a.ts',
      `import '../drivers/memory/index.ts'`,
      'scheduler imports only',
    ],
    ['an inner file from nestjs', 'nestjs/a.ts', `import '../core/lease.ts'`, 'only the public entry points'],
    [
      'an inner file of a driver',
      'cli/a.ts',
      `import '../drivers/redis/locks.ts'`,
      'only the public entry points',
    ],
    ['code in the index', 'index.ts', `export const a = 1`, 'index.ts only re-exports'],
    ['a folder without a layer', 'utils/a.ts', ``, 'every file belongs to a layer'],
  ])('refuse %s, naming the file and the rule', (_what, path, source, rule) => {
    const lines = broken({ [path]: source })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain(`src/${path}:1: `)
    expect(lines[0]).toContain(rule)
  })

  it('refuse a cycle, but not one of types only', () => {
    const back = { 'core/b.ts': `import './a.ts'` }
    expect(broken({ 'core/a.ts': `import { b } from './b.ts'`, ...back })).toEqual([
      'src/core/a.ts:1: no import cycles (core/a.ts → core/b.ts → core/a.ts)',
    ])
    expect(broken({ 'core/a.ts': `import type { B } from './b.ts'`, ...back })).toEqual([])
  })
})
