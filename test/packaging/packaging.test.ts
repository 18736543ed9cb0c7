import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { installPackedPackage, type Application } from './packed-package.ts'

/** It is for applications that have Nest: test/nestjs installs it in some. */
const needsPeer = 'leasehold/nestjs'

describe('the packed package, in an application without any optional peer', () => {
  let application: Application

  beforeAll(async () => {
    application = await installPackedPackage()
  })

  afterAll(() => application.remove())

  it('contains the compiled code, its types, and what npm adds', () => {
    const others = application.packedFiles.filter((path) => !/^dist\/.*(\.d\.ts|\.js)$/.test(path))
    expect(others.toSorted()).toEqual(['LICENSE', 'README.md', 'package.json'])
  })

  it('is imported by an ES module, every entry point of it', async () => {
    const entryPoints = application.entryPoints.filter((name) => name !== needsPeer)
    const program = `
      const found = {}
      for (const name of ${JSON.stringify(entryPoints)}) found[name] = Object.keys(await import(name)).length
      console.log(JSON.stringify(found))`
    const found = (await application.run({ 'import.mjs': program }, 'import.mjs')) as Record<string, number>
    expect(Object.keys(found)).toEqual(entryPoints)
    expect(found['leasehold']).toBeGreaterThan(0)
  })

  it('is required by CommonJS, every entry point of it', async () => {
    const entryPoints = application.entryPoints.filter((name) => name !== needsPeer)
    const program = `
      const found = {}
      for (const name of ${JSON.stringify(entryPoints)}) found[name] = Object.keys(require(name)).length
      console.log(JSON.stringify(found))`
    const found = (await application.run({ 'require.cjs': program }, 'require.cjs')) as Record<string, number>
    expect(Object.keys(found)).toEqual(entryPoints)
    expect(found['leasehold']).toBeGreaterThan(0)
  })

  it('calls everything what it is exported as, in logs and stack traces', async () => {
    const entryPoints = application.entryPoints.filter((name) => name !== needsPeer)
    const program = `
      const renamed = []
      for (const entry of ${JSON.stringify(entryPoints)}) {
        for (const [name, value] of Object.entries(await import(entry))) {
          if (typeof value === 'function' && value.name !== name) renamed.push([entry, name, value.name])
        }
      }
      console.log(JSON.stringify(renamed))`
    expect(await application.run({ 'names.mjs': program }, 'names.mjs')).toEqual([])
  })

  it('locks, imported and required, on the same process-wide table', async () => {
    const program = `
      import { createRequire } from 'node:module'
      import { LockService } from 'leasehold'
      const required = createRequire(import.meta.url)('leasehold')
      const [one, other] = [new LockService(), new required.LockService()]
      const lease = await one.acquire('key')
      const held = await other.acquire('key')
      await lease.release()
      const free = await other.acquire('key')
      console.log(JSON.stringify([lease !== null, held, free !== null, free.fence > lease.fence]))
      await one.close()
      await other.close()`
    expect(await application.run({ 'lock.mjs': program }, 'lock.mjs')).toEqual([true, null, true, true])
  })

  it('has types that hold without skipLibCheck and without the clients', async () => {
    const entryPoints = application.entryPoints.filter((name) => name !== needsPeer)
    const imports = entryPoints.map((name, index) => `import * as entry${index} from '${name}'`)
    const uses = entryPoints.map((_name, index) => `export type Entry${index} = typeof entry${index}`)
    expect(await application.compile({ 'types.mts': [...imports, ...uses].join('\n') })).toBe('')
  })

  it('has types that are checked: a wrong use does not compile', async () => {
    const program = `import { LockService } from 'leasehold'\nnew LockService({ namespace: 42 })`
    expect(await application.compile({ 'wrong.mts': program })).toContain('wrong.mts(2,')
  })
})
