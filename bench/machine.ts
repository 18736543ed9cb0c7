import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'

const syncs = 200

/** What the figures of a run depend on most, for people. */
export function describeMachine(folder: string): string {
  const [cpu] = cpus()
  const memory = Math.round(totalmem() / 2 ** 30)
  const sync = syncMs(folder).toFixed(2)
  return `Node.js ${process.versions.node} on ${cpus().length} × ${cpu?.model ?? 'CPU'}, ${memory} GiB; the disk confirms a write in ${sync} ms`
}

/** How long the disk takes to confirm a page: the least that a commit of an SQL store costs. */
function syncMs(folder: string): number {
  const path = join(folder, 'sync')
  const file = openSync(path, 'w')
  const page = Buffer.alloc(8_192)
  const startedAt = performance.now()
  for (let index = 0; index < syncs; index++) {
    writeSync(file, page, 0, page.length, index * page.length)
    fdatasyncSync(file)
  }
  const took = performance.now() - startedAt
  closeSync(file)
  rmSync(path)
  return took / syncs
}
