// The example as applications of their own, on Nest 12 (ES modules) and Nest 11 (CommonJS), as processes on real stores.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { connect, TaskScheduler } from 'leasehold'
import { beforeAll, describe, it } from 'vitest'
import { freshNamespace, freshPostgresUrl, isAvailable, redisUrl } from '../support/stores.ts'
import { installApp, type NestVersion } from './installed-app.ts'

const run = promisify(execFile)
const stores = { redis: redisUrl, postgres: freshPostgresUrl }

interface Figures {
  readonly exits: readonly (string | number)[]
  readonly jobs: readonly {
    readonly job: string
    readonly due: number
    readonly runs: number
    readonly once: number
    readonly more: number
    readonly never: number | null
  }[]
}

const names = ['close-orders', 'pollInbox', 'refreshRates', 'sendDigests']

describe.each<NestVersion>([12, 11])('three processes of the example on Nest %i', (version) => {
  let folder: string | null = null

  beforeAll(async () => {
    folder = await installApp(version)
  }, 300_000)

  async function figures(...args: string[]): Promise<Figures> {
    const seconds = ['--seconds', '9', '--every', '2', '--starts', '0,0.7,1.3', '--json']
    const { stdout } = await run(process.execPath, ['fleet.mjs', ...seconds, ...args], { cwd: folder ?? '' })
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Figures
  }

  // Side by side: each mostly waits for its slots.
  it.concurrent.for(Object.entries(stores))(
    'run each slot once on %s, one killed and one started meanwhile (A1)',
    { timeout: 60_000 },
    async ([name, url], { skip, expect }) => {
      if (folder === null || !(await isAvailable(name as keyof typeof stores))) return skip()
      const { jobs, exits } = await figures('--url', await url(), '--namespace', freshNamespace())
      expect(jobs.map(({ job }) => job)).toEqual(names)
      for (const { due, ...counts } of jobs) {
        expect(due).toBeGreaterThanOrEqual(4)
        expect(counts).toMatchObject({ runs: due, once: due, more: 0, never: 0 })
      }
      expect(exits).toEqual(['SIGTERM', 'SIGKILL', 'SIGTERM', 'SIGTERM'])
    },
  )

  it.concurrent(
    'run each job three times without the import',
    { timeout: 60_000 },
    async ({ skip, expect }) => {
      if (folder === null) return skip()
      const { jobs } = await figures('--without')
      expect(jobs.map(({ job }) => job)).toEqual(names)
      // An interval timer may drift over an end of the time that is looked at.
      for (const { due, runs } of jobs) expect(Math.abs(runs - 3 * due)).toBeLessThanOrEqual(3)
    },
  )

  it.concurrent.for([
    { exit: 'by the signal', env: {}, end: [null, 'SIGTERM'] },
    { exit: 'with 0 by useProcessExit', env: { USE_PROCESS_EXIT: '1' }, end: [0, null] },
  ])(
    'end a job of five seconds on SIGTERM, under a live heartbeat, and exit $exit',
    { timeout: 60_000 },
    async ({ env, end }, { skip, expect, onTestFinished }) => {
      if (folder === null || !(await isAvailable('redis'))) return skip()
      // The job takes more than twice as long as its lease lasts without renewal.
      const url = `${await redisUrl()}?ttl=2s`
      const namespace = freshNamespace()
      const child = spawn(process.execPath, [join(folder, 'dist/main.js')], {
        env: {
          ...process.env,
          ...env,
          LEASEHOLD_URL: url,
          LEASEHOLD_NAMESPACE: namespace,
          EVERY_SECONDS: '1',
          SLOW_TASK: '1',
        },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      onTestFinished(() => void child.kill('SIGKILL'))
      const done: { job?: string; slot?: number; begun?: true; ended?: true }[] = []
      let tellBegun: () => void = () => {}
      const begun = new Promise<void>((resolve) => (tellBegun = resolve))
      createInterface(child.stdout).on('line', (line) => {
        // Beside what Nest logs.
        if (!line.startsWith('{')) return
        const told = JSON.parse(line) as (typeof done)[number]
        done.push(told)
        if (told.begun) tellBegun()
      })
      // After its last line, which may come later than its exit.
      const ended = once(child, 'close')
      await begun
      const killedAt = Date.now()
      child.kill('SIGTERM')
      expect(await ended).toEqual(end)

      expect(done.filter(({ slot }) => slot !== undefined && slot > killedAt)).toEqual([])
      expect(done.at(-1)).toMatchObject({ job: 'rebuildIndex', ended: true })
      const locks = await connect(url, { namespace })
      onTestFinished(() => locks.close())
      const history = await new TaskScheduler({ locks }).history('SlowTasksService.rebuildIndex')
      // On a slow machine the next slot may come before the signal, and is skipped.
      const runs = history.filter(({ state }) => state !== 'skipped' && state !== 'registered')
      expect(runs.map(({ state, attempt, reason }) => ({ state, attempt, reason }))).toEqual([
        { state: 'succeeded', attempt: 1, reason: null },
      ])
      expect(runs[0]?.durationMs).toBeGreaterThanOrEqual(4_900)
    },
  )

  it.concurrent(
    'end by themselves without tasks, and stay for @Scheduled ones',
    { timeout: 60_000 },
    async ({ skip, expect }) => {
      if (folder === null || !(await isAvailable('redis'))) return skip()
      const program = `
      import 'reflect-metadata'
      import { Module } from '@nestjs/common'
      import { NestFactory } from '@nestjs/core'
      import { ScheduleModule } from '@nestjs/schedule'
      import { LockService, Scheduled } from 'leasehold'
      import { LeaseholdModule } from 'leasehold/nestjs'
      class Tasks { task() { console.log('task'); process.kill(process.pid, 'SIGTERM') } }
      if (process.env.WITH_TASK) {
        Scheduled({ every: '1s' })(Tasks.prototype, 'task', Object.getOwnPropertyDescriptor(Tasks.prototype, 'task'))
      }
      class AppModule {}
      Module({ imports: [ScheduleModule.forRoot(), LeaseholdModule.forRoot()], providers: [Tasks] })(AppModule)
      const app = await NestFactory.createApplicationContext(AppModule, { logger: false })
      app.enableShutdownHooks([], { useProcessExit: true })
      if (!process.env.WITH_TASK) app.get(LockService).runExclusively('key', () => {}).then(console.log)`
      await writeFile(join(folder, 'program.mjs'), program)
      const env = { ...process.env, LEASEHOLD_URL: await redisUrl(), LEASEHOLD_NAMESPACE: freshNamespace() }
      const options = { cwd: folder, timeout: 30_000 }
      const ended = await run(process.execPath, ['program.mjs'], { ...options, env })
      expect(ended.stdout).toBe('ran\n')
      const stopped = await run(process.execPath, ['program.mjs'], {
        ...options,
        env: { ...env, WITH_TASK: '1' },
      })
      expect(stopped.stdout).toBe('task\n')
    },
  )
})
