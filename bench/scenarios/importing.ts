import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { resolvePeer } from '../peers.ts'
import type { Finding, Role, Scenario } from '../scenario.ts'

const runs = 15

interface Cost {
  readonly ms: number
  readonly mebibytes: number
}

interface Imported {
  readonly name: string
  readonly role: Role
  readonly url: () => Promise<string>
}

const dist = (path: string) => async () => pathToFileURL(join(process.cwd(), 'dist', path)).href

const imported: readonly Imported[] = [
  { name: 'leasehold core', role: 'ours', url: dist('core.js') },
  { name: 'leasehold', role: 'ours', url: async () => 'leasehold' },
  ...['redlock', '@sesamecare-oss/redlock', 'redis-semaphore', '@verrou/core', 'redlock-universal'].map(
    (name): Imported => ({ name, role: 'peer', url: () => resolvePeer(name) }),
  ),
]

export const importing: Scenario = {
  name: 'import',
  what: `what an import adds to an empty process, ${runs} processes each`,
  async run() {
    const sources = await Promise.all(
      imported.map(async (each) => ({ ...each, specifier: await each.url() })),
    )
    const costs = new Map<string, Cost[]>(imported.map(({ name }) => [name, []]))
    for (let run = 0; run < runs; run++) {
      // In each process first an import of nothing: what the loader itself costs is there anyway.
      for (const { name, specifier } of sources) costs.get(name)?.push(await importCost(specifier))
    }
    return sources.flatMap(({ name, role }): Finding[] => {
      const found = costs.get(name) ?? []
      return [
        { subject: name, role, metric: 'importMs', values: found.map(({ ms }) => ms) },
        { subject: name, role, metric: 'importMiB', values: found.map(({ mebibytes }) => mebibytes) },
      ]
    })
  },
}

async function importCost(specifier: string): Promise<Cost> {
  const program = `
    await import('data:text/javascript,')
    const rss = process.memoryUsage.rss(), before = performance.now()
    await import(${JSON.stringify(specifier)})
    console.log(JSON.stringify({ ms: performance.now() - before, mebibytes: (process.memoryUsage.rss() - rss) / 2 ** 20 }))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
  return JSON.parse(stdout) as Cost
}
