import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { redisUrl } from '../../support/stores.ts'
import { clientKinds } from './clients.ts'
import type { Said } from './listening-process.ts'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
let folder: string

// Node.js 20 runs no TypeScript. The bundle lies where the client libraries can be found.
beforeAll(async () => {
  folder = mkdtempSync(here('../../../node_modules/.leasehold-redis-'))
  await build({
    configFile: false,
    logLevel: 'silent',
    resolve: { alias: { 'leasehold/redis': here('../../../src/drivers/redis/index.ts') } },
    build: {
      ssr: here('listening-process.ts'),
      outDir: folder,
      rolldownOptions: { output: { entryFileNames: 'listening.mjs' } },
    },
  })
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('a process with an open subscription', () => {
  it.each(clientKinds)('ends when nothing else keeps it (%s)', async (kind) => {
    const child = spawn(process.execPath, [join(folder, 'listening.mjs'), kind, await redisUrl()])
    onTestFinished(() => {
      child.kill('SIGKILL')
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (output += String(piece)))
    const [code] = await once(child, 'exit')
    expect([output.trim(), code]).toEqual(['listening' satisfies Said, 0])
  })
})
