import { expect, test } from 'vitest'
import { DriverFault } from '../../../src/core/errors.ts'
import { sqliteDriver } from '../../../src/drivers/sqlite/index.ts'
import {
  acquireRequest,
  call,
  claimRequest,
  faultOf,
  freshPath,
  grant,
  openRaw,
  openSession,
  registerRequest,
} from './sqlite-store.ts'

/** Greater than any integer that JavaScript holds exactly. */
const unsafeFence = '9007199254740995'

test('a record that another program spoilt fails for itself and leaves the others of its batch alone', async () => {
  const path = freshPath()
  const session = openSession(path)
  const keys = ['a', 'b', 'c']
  for (const key of keys) await grant(session, acquireRequest(key))
  openRaw(path).exec(`update leasehold_lease set fence = ${unsafeFence} where key = 'b'`)

  const batch = keys.map((key) => acquireRequest(key))
  const bad = { outcome: 'failed', error: expect.any(DriverFault) }
  const held = { outcome: 'held' }
  expect(await session.locks.refresh(batch, call)).toMatchObject([held, bad, held])
  expect(await session.locks.acquire(batch, call)).toMatchObject([
    { outcome: 'granted' },
    bad,
    { outcome: 'granted' },
  ])
  const released = { outcome: 'released' }
  expect(await session.locks.release(batch, call)).toMatchObject([released, bad, released])
})

test('a value that SQLite refuses fails for itself and leaves the others of its batch alone', async () => {
  const path = freshPath()
  const session = openSession(path)
  await session.tasks.register([registerRequest('a')], call)
  openRaw(path).exec(`
    create trigger refuse before insert on leasehold_lease when new.key = 'b'
    begin select raise(abort, 'not this one'); end`)
  const batch = ['a', 'b', 'c'].map((key) => acquireRequest(key))
  expect(await session.locks.acquire(batch, call)).toMatchObject([
    { outcome: 'granted' },
    { outcome: 'failed' },
    { outcome: 'granted' },
  ])
  expect(await session.locks.peek(['a', 'b', 'c'], call)).toMatchObject([{ key: 'a' }, null, { key: 'c' }])
})

test('a task whose log row is refused keeps its record as it was', async () => {
  const path = freshPath()
  const session = openSession(path)
  await session.tasks.poll(call)
  openRaw(path).exec(`
    create trigger refuse before insert on leasehold_run when new.task = 'b' and new.state = 'running'
    begin select raise(abort, 'not this one'); end`)
  const marks = new Map<string, number>()
  for (const answer of await session.tasks.register(
    ['a', 'b', 'c'].map((name) => registerRequest(name)),
    call,
  )) {
    if (!('mark' in answer)) throw new Error(answer.outcome)
    marks.set(['a', 'b', 'c'][marks.size] ?? '', answer.mark)
  }
  const mark = Math.max(...marks.values())
  await until(async () => (await session.tasks.poll(call)).now > mark)

  const batch = [...marks].map(([task, after]) => claimRequest(task, after + 1, after))
  expect(await session.tasks.claim(batch, call)).toMatchObject([
    { outcome: 'granted' },
    { outcome: 'failed' },
    { outcome: 'granted' },
  ])
  const records = await session.tasks.inspect(['a', 'b', 'c'], call)
  expect(records).toMatchObject([
    { mark: (marks.get('a') ?? 0) + 1 },
    { mark: marks.get('b'), running: null },
    { mark: (marks.get('c') ?? 0) + 1 },
  ])
})

test('a fence beyond the safe integers is never granted', async () => {
  const path = freshPath()
  const session = openSession(path)
  await grant(session, acquireRequest('a', { ttlMs: 1 }))
  const raw = openRaw(path)
  raw.exec(`update leasehold_lease set fence = ${Number.MAX_SAFE_INTEGER}`)
  await until(async () => (await session.locks.peek(['a'], call))[0] === null)
  const [answer, other] = await session.locks.acquire(
    [acquireRequest('a', { token: 'next' }), acquireRequest('b')],
    call,
  )
  expect(answer).toMatchObject({ outcome: 'failed' })
  expect(other).toMatchObject({ outcome: 'granted' })
})

test('a disk that is full applies nothing', async () => {
  const path = freshPath()
  const session = openSession(path)
  await session.locks.peek(['a'], call)
  const raw = openRaw(path)
  const full = sqliteDriver({ database: raw }).open('test')
  await full.locks.peek(['a'], call)
  const { page_count: pages } = raw.prepare('pragma page_count').get() as { page_count: number }
  raw.prepare(`pragma max_page_count = ${pages}`).get()
  const holder = 'x'.repeat(1000)
  const batch = Array.from({ length: 100 }, (_, index) => acquireRequest(`key-${index}`, { holder }))
  expect(await faultOf(full.locks.acquire(batch, call))).toMatchObject({ kind: 'not-sent' })
  expect((await session.locks.scan({ prefix: '', limit: 10, cursor: null }, call)).records).toEqual([])
  expect(await full.locks.acquire([acquireRequest('small')], call)).toMatchObject([{ outcome: 'granted' }])
})

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setImmediate(resolve))
}
