import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

/*
 * A driver, or a version of a client, that the package offers and that no file of this folder runs the contract on is a
 * failure. Files are called <driver>.<client>[-<major>][-<kind>].test.ts.
 */

interface Manifest {
  readonly version: string
  readonly exports: Record<string, { readonly default?: string } | string>
  readonly peerDependencies: Record<string, string>
  readonly devDependencies: Record<string, string>
}

const root = new URL('../../', import.meta.url)
const manifest = readJson(new URL('package.json', root))
const files = readdirSync(new URL('.', import.meta.url)).filter((file) => file.endsWith('.test.ts'))
const suites = new Map(
  files.map((file) => [file.replace('.test.ts', ''), readFileSync(new URL(file, import.meta.url), 'utf8')]),
)

/** The clients of each driver, by the names of their packages. */
const clients: Record<string, readonly string[]> = {
  memory: [],
  sqlite: ['better-sqlite3'],
  postgres: ['pg', 'postgres'],
  redis: ['ioredis', 'redis'],
}

/** What the files call a package whose own name says too little. */
const calledInFiles: Record<string, string> = { redis: 'node-redis' }

/** Versions that a peer range allows and that cannot be installed beside the others here. */
const elsewhere: Record<string, string> = {
  'better-sqlite3 13': 'needs Node.js 22, where the version matrix runs node:sqlite; same interface as 12',
}

const exportedDrivers = Object.values(manifest.exports).flatMap((target) => {
  const path = typeof target === 'string' ? target : (target.default ?? '')
  return /^\.\/dist\/drivers\/([a-z0-9-]+)\/index\.js$/.exec(path)?.slice(1) ?? []
})

describe('the contract is run', () => {
  it('on every driver that the package exports', () => {
    expect(exportedDrivers.toSorted()).toEqual(Object.keys(clients).toSorted())
    for (const driver of exportedDrivers) {
      const own = [...suites.keys()].filter((suite) => suite === driver || suite.startsWith(`${driver}.`))
      expect(own, driver).not.toEqual([])
    }
  })

  it('on every driver that has a folder', () => {
    const folders = readdirSync(new URL('src/drivers/', root), { withFileTypes: true })
    expect(
      folders
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual(exportedDrivers.toSorted())
  })

  it('on every client that is an optional peer', () => {
    const known = Object.values(clients).flat()
    const drivers = Object.keys(manifest.peerDependencies).filter((peer) => !isNoClient(peer))
    expect(drivers.toSorted()).toEqual(known.toSorted())
  })

  for (const [driver, peers] of Object.entries(clients)) {
    for (const peer of peers) {
      for (const major of majorsOf(manifest.peerDependencies[peer] ?? '')) {
        it(`on ${driver} with ${peer} ${major}`, () => {
          if (`${peer} ${major}` in elsewhere) {
            expect(installedAs(peer, major)).toBeUndefined()
            return
          }
          const installed = installedAs(peer, major)
          expect(installed, `${peer} ${major} is not installed`).toBeDefined()
          const prefix = `${driver}.${calledInFiles[peer] ?? peer}-${major}`
          const own = [...suites].filter(([suite]) => suite === prefix || suite.startsWith(`${prefix}-`))
          expect(
            own.map(([suite]) => suite),
            prefix,
          ).not.toEqual([])
          for (const [suite, text] of own) {
            expect(text, suite).toContain(`from '${installed}'`)
          }
        })
      }
    }
  }

  it('on the ways in that are no package', () => {
    for (const suite of [
      'memory',
      'sqlite.path',
      'sqlite.node-sqlite',
      'postgres.pg-8-pool',
      'postgres.pg-8-client',
      'postgres.query',
      'postgres.typeorm',
    ]) {
      expect([...suites.keys()]).toContain(suite)
    }
  })

  it('as a whole by every file', () => {
    for (const [suite, text] of suites) {
      if (exportedDrivers.includes(suite.split('.')[0] ?? '')) expect(text, suite).toContain('contractFile(')
    }
  })
})

/** Under which name this version of the package is installed: its own, or an alias of it. */
function installedAs(peer: string, major: number): string | undefined {
  const aliases = Object.entries(manifest.devDependencies).flatMap(([name, target]) =>
    target.startsWith(`npm:${peer}@`) ? [name] : [],
  )
  return [peer, ...aliases].find((name) => {
    const file = new URL(`node_modules/${name}/package.json`, root)
    return existsSync(file) && Number(readJson(file).version.split('.')[0]) === major
  })
}

function majorsOf(range: string): number[] {
  const majors = [...range.matchAll(/\^(\d+)\./g)].map(([, major]) => Number(major))
  expect(majors.length, `cannot read the range ${range}`).toBe(range.split('||').length)
  return majors
}

/** Peers that have nothing to do with a store. */
function isNoClient(peer: string): boolean {
  return (
    peer.startsWith('@nestjs/') || peer.startsWith('@opentelemetry/') || ['rxjs', 'vitest'].includes(peer)
  )
}

function readJson(file: URL): Manifest {
  return JSON.parse(readFileSync(file, 'utf8')) as Manifest
}
