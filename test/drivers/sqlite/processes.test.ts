import { expect, test } from 'vitest'
import { useWorkers } from './processes.ts'
import { acquireRequest, call, freshPath, openRaw, openSession } from './sqlite-store.ts'

const startWorker = useWorkers()

test('processes that create the tables at the same time all succeed', async () => {
  const path = freshPath()
  const workers = await Promise.all(Array.from({ length: 4 }, startWorker))
  await Promise.all(workers.map((worker) => worker.obey({ kind: 'create', path }, 'created')))
  const raw = openRaw(path)
  expect(raw.prepare('select value from leasehold_meta').all()).toEqual([{ value: '1' }])
  expect(raw.prepare('pragma journal_mode').get()).toEqual({ journal_mode: 'wal' })
  expect(raw.prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' })
})

test('the key of a holder that was killed is free one ttl later, and no sooner (M3, N32)', async () => {
  const path = freshPath()
  const ttlMs = 700
  const worker = await startWorker()
  const before = Date.now()
  const { fence } = await worker.obey({ kind: 'hold', path, key: 'a', ttlMs }, 'holding')
  const granted = Date.now()
  await worker.kill()

  const session = openSession(path)
  for (;;) {
    const asked = Date.now()
    const [answer] = await session.locks.acquire([acquireRequest('a')], call)
    if (answer?.outcome === 'granted') {
      expect(answer.fence).toBeGreaterThan(fence)
      expect(Date.now()).toBeGreaterThanOrEqual(before + ttlMs)
      break
    }
    expect(answer).toMatchObject({ outcome: 'held', fence })
    expect(asked).toBeLessThanOrEqual(granted + ttlMs)
    await new Promise((resolve) => setImmediate(resolve))
  }
})

test('a process that is killed in the middle of its writes leaves an intact file', async () => {
  const path = freshPath()
  const worker = await startWorker()
  await worker.obey({ kind: 'create', path }, 'created')
  void worker.obey({ kind: 'cycle', path, key: 'a', rounds: 1_000_000 }, 'cycled').catch(() => undefined)
  const session = openSession(path)
  let seen = 0
  while (seen < 20) {
    const [record] = await session.locks.peek(['a'], call)
    if (record !== null && record !== undefined) seen += 1
    await new Promise((resolve) => setImmediate(resolve))
  }
  await worker.kill()
  expect(openRaw(path).prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' })
  expect(await session.locks.acquire([acquireRequest('b')], call)).toMatchObject([{ outcome: 'granted' }])
})

test('four processes that cycle one key never overlap, and their fences rise', async () => {
  const path = freshPath()
  const rounds = 60
  const workers = await Promise.all(Array.from({ length: 4 }, startWorker))
  const reports = await Promise.all(
    workers.map((worker) => worker.obey({ kind: 'cycle', path, key: 'a', rounds }, 'cycled')),
  )
  const holds = reports
    .flatMap((report) => report.holds)
    .map(({ fence, from, to }) => ({ fence, from: BigInt(from), to: BigInt(to) }))
    .toSorted((a, b) => (a.from < b.from ? -1 : 1))
  expect(holds).toHaveLength(4 * rounds)
  for (const [index, hold] of holds.entries()) {
    const next = holds[index + 1]
    if (next === undefined) continue
    expect(next.from > hold.to, 'the next holder begins after the one before has ended').toBe(true)
    expect(next.fence).toBeGreaterThan(hold.fence)
  }
})

test('without a SQLite library the driver is not made, and the error says what to install', async () => {
  const worker = await startWorker()
  const { code, message } = await worker.obey({ kind: 'do-without', path: freshPath() }, 'refused')
  expect(code).toBe('DRIVER_MISSING')
  expect(message).toContain('npm install better-sqlite3')
})
