import { randomUUID } from 'node:crypto'
import { afterEach, expect, test, vi } from 'vitest'
import { InvalidOptionError } from '../../../src/core/errors.ts'
import type { AcquireRequest, CallOptions, Notice } from '../../../src/driver/index.ts'
import { memoryDriver } from '../../../src/drivers/memory/index.ts'
import type { MemoryDriverOptions } from '../../../src/drivers/memory/index.ts'

const call: CallOptions = { attempt: 1, lockedRows: 'skip' }

function request(key: string, changes: Partial<AcquireRequest> = {}): AcquireRequest {
  return { key, token: `token-of-${key}`, ttlMs: 60_000, holder: '{}', waitingMs: 0, ...changes }
}

afterEach(() => {
  vi.restoreAllMocks()
  vi.resetModules()
})

test('two copies of the module share one table, and push to each other', async () => {
  const store = randomUUID()
  vi.resetModules()
  const copy = await import('../../../src/drivers/memory/index.ts')
  expect(copy.memoryDriver).not.toBe(memoryDriver)
  const one = memoryDriver({ store }).open('n')
  const two = copy.memoryDriver({ store }).open('n')
  const notices: Notice[] = []
  await two.listen?.({ onNotice: (notice) => notices.push(notice), onDeaf: () => undefined })

  const [granted] = await one.locks.acquire([request('a')], call)
  expect(granted).toMatchObject({ outcome: 'granted' })
  const [held] = await two.locks.acquire([request('a', { token: 'other', waitingMs: 1000 })], call)
  expect(held).toMatchObject({ outcome: 'held', fence: (granted as { fence: number }).fence })
  await one.locks.release([request('a')], call)
  await Promise.resolve()
  expect(notices).toEqual([{ kind: 'released', key: 'a' }])
})

test('stores and namespaces are apart, and drivers of one store are not', async () => {
  const store = randomUUID()
  const first = memoryDriver({ store })
  await first.open('n').locks.acquire([request('a')], call)
  const held = async (options: MemoryDriverOptions, namespace: string) =>
    (await memoryDriver(options).open(namespace).locks.peek(['a'], call))[0] !== null
  expect(await held({ store }, 'n')).toBe(true)
  expect(await held({ store }, 'N')).toBe(false)
  expect(await held({ store: randomUUID() }, 'n')).toBe(false)
  expect(await held({}, 'n')).toBe(false)
})

test('a fake clock decides expiry, and separates nothing', async () => {
  const store = randomUUID()
  let now = 1_796_000_000_000
  const faked = memoryDriver({ store, now: () => now }).open('n')
  await faked.locks.acquire([request('a', { ttlMs: 1000 })], call)
  now += 999
  expect(await faked.locks.refresh([request('a', { ttlMs: 1 })], call)).toEqual([
    { outcome: 'held', remainingMs: 1 },
  ])
  now += 1
  expect(await faked.locks.refresh([request('a')], call)).toEqual([{ outcome: 'lost', reason: 'gone' }])
  const other = memoryDriver({ store, now: () => now - 10 }).open('n')
  expect(await other.locks.peek(['a'], call)).toMatchObject([{ key: 'a', remainingMs: 10 }])
})

test('leases do not follow the wall clock when it steps, and slots do', async () => {
  const session = memoryDriver({ store: randomUUID() }).open('n')
  await session.locks.acquire([request('a')], call)
  const wall = Date.now()
  for (const step of [3_600_000, -3_600_000]) {
    vi.spyOn(Date, 'now').mockReturnValue(wall + step)
    const [record] = await session.locks.peek(['a'], call)
    expect(record?.remainingMs).toBeGreaterThan(50_000)
    expect(record?.remainingMs).toBeLessThanOrEqual(60_000)
    expect(await session.tasks.poll(call)).toEqual({ version: 0, now: wall + step })
  }
})

test('fences rise although the clock steps back and the records were purged', async () => {
  let now = 1_796_000_000_000
  const session = memoryDriver({ store: randomUUID(), now: () => now }).open('n')
  const fences: number[] = []
  for (const [token, step] of [
    ['one', 0],
    ['two', 5000],
    ['three', -9000],
    ['four', 0],
  ] as const) {
    now += step
    const [granted] = await session.locks.acquire([request('a', { token })], call)
    if (granted?.outcome !== 'granted') throw new Error(granted?.outcome)
    fences.push(granted.fence)
    await session.locks.release([request('a', { token })], call)
    await session.locks.purge({ retentionMs: 0, limit: 10 }, call)
  }
  expect(fences[1]).toBe(1_796_000_005_000_000)
  expect(fences).toEqual([...new Set(fences)].toSorted((a, b) => a - b))
})

test('a purge deletes no more than its limit, and only what is free for long enough', async () => {
  let now = 1_796_000_000_000
  const session = memoryDriver({ store: randomUUID(), now: () => now }).open('n')
  const keys = Array.from({ length: 10 }, (_, index) => `key-${index}`)
  await session.locks.acquire(
    keys.map((key) => request(key)),
    call,
  )
  await session.locks.release(
    keys.slice(1).map((key) => request(key)),
    call,
  )
  now += 999
  expect(await session.locks.purge({ retentionMs: 1000, limit: 5 }, call)).toBe(0)
  now += 1
  expect(await session.locks.purge({ retentionMs: 1000, limit: 5 }, call)).toBe(5)
  expect(await session.locks.purge({ retentionMs: 1000, limit: 5 }, call)).toBe(4)
  expect(await session.locks.purge({ retentionMs: 1000, limit: 5 }, call)).toBe(0)
  expect(await session.locks.peek(['key-0'], call)).toMatchObject([{ key: 'key-0' }])
})

test('a closed session hears nothing any more, and others still do', async () => {
  const driver = memoryDriver({ store: randomUUID() })
  const [one, two] = [driver.open('n'), driver.open('n')]
  const heard: string[] = []
  const listener = (name: string) => ({ onNotice: () => void heard.push(name), onDeaf: () => undefined })
  const channel = await one.listen?.(listener('one'))
  await two.listen?.(listener('two'))
  await channel?.probe()
  await one.close()
  await one.close()
  await expect(channel?.probe()).rejects.toMatchObject({ kind: 'not-sent' })
  await two.tasks.register(
    [{ task: 't', fingerprint: 'f', definition: '{}', starting: true, attendMs: 1000 }],
    call,
  )
  await two.tasks.control({ task: 't', kind: 'pause', requestId: 'r', by: 'me', fence: null }, call)
  await Promise.resolve()
  expect(heard).toEqual(['two'])
})

test('notices come after the answer of the call that caused them', async () => {
  const session = memoryDriver({ store: randomUUID() }).open('n')
  const order: string[] = []
  await session.listen?.({ onNotice: () => void order.push('notice'), onDeaf: () => undefined })
  await session.locks.acquire([request('a'), request('a', { token: 'b', waitingMs: 1000 })], call)
  const released = session.locks.release([request('a')], call)
  order.push('called')
  await released
  await Promise.resolve()
  expect(order).toEqual(['called', 'notice'])
})

test.for<[string, unknown]>([
  ['an empty store', { store: '' }],
  ['a store that is no text', { store: 7 }],
  ['a clock that is no function', { now: 7 }],
])('%s is an invalid option', ([, options]) => {
  expect(() => memoryDriver(options as MemoryDriverOptions)).toThrow(InvalidOptionError)
})
