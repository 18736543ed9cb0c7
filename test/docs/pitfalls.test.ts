import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/root.mjs'
import { lapsedRunBugs } from '../contract/planted/lapsed-run-bugs.ts'
import { leaseBugs } from '../contract/planted/lease-bugs.ts'
import { operatorBugs } from '../contract/planted/operator-bugs.ts'
import { pushBugs } from '../contract/planted/push-bugs.ts'
import { taskBugs } from '../contract/planted/task-bugs.ts'
import { bugs as coreBugs } from '../core/planted/bugs.ts'
import { bugs as memoryBugs } from '../drivers/memory/planted/bugs.ts'
import { bugs as postgresBugs } from '../drivers/postgres/planted/bugs.ts'
import { bugs as redisBugs } from '../drivers/redis/planted/bugs.ts'
import { bugs as sqliteBugs } from '../drivers/sqlite/planted/bugs.ts'
import { bugs as nestBugs } from '../nestjs/planted/bugs.ts'
import { tableRows } from './tables.ts'

interface Planted {
  readonly name: string
  readonly caughtBy: readonly { readonly sentence: string }[]
}

const contractBugs = [...leaseBugs, ...operatorBugs, ...pushBugs, ...taskBugs, ...lapsedRunBugs].map(
  ({ id, what, caughtBy }): Planted => ({
    name: `\`${id}\`: ${what}`,
    caughtBy: caughtBy.map((sentence) => ({ sentence })),
  }),
)

/** They are written into a test file, and caught by a scenario each. */
const schedulerBugs = [
  ...readFileSync(join(root, 'test/scheduler/planted-bugs.test.ts'), 'utf8').matchAll(
    /^ {4}what: (['"])(.+)\1,$/gm,
  ),
].map(([, , name = '']): Planted => ({ name, caughtBy: [{ sentence: 'the scenario beside it' }] }))

const planted: Record<string, readonly Planted[]> = {
  contract: contractBugs,
  core: coreBugs,
  scheduler: schedulerBugs,
  postgres: postgresBugs,
  redis: redisBugs,
  sqlite: sqliteBugs,
  memory: memoryBugs,
  nestjs: nestBugs,
}

describe('docs/pitfalls.md', () => {
  const rows = tableRows('docs/pitfalls.md', ['what is done wrong', 'in', 'turns red'])

  it.each(Object.entries(planted))(
    'has a row for each bug that is planted into the %s, and no other',
    (where, bugs) => {
      const wanted = bugs.map(({ name, caughtBy }) => [
        name,
        where,
        caughtBy.map(({ sentence }) => sentence).join('; '),
      ])
      expect(wanted.length).toBeGreaterThan(0)
      expect(asLines(rows.filter((row) => row[1] === where))).toEqual(asLines(wanted))
    },
  )

  it('has rows for nothing else', () => {
    expect(rows.filter(([, where = '']) => planted[where] === undefined)).toEqual([])
  })
})

function asLines(rows: readonly (readonly string[])[]): readonly string[] {
  return rows.map((row) => `| ${row.join(' | ')} |`).toSorted()
}
