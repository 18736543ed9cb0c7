import { beforeEach, describe, expect, it } from 'vitest'
import { DriverFault } from 'leasehold'
import type { AcquireRequest, DriverSession } from 'leasehold/driver'
import { memoryDriver } from 'leasehold/memory'
import { type Faults, faultyDriver } from 'leasehold/testing'
import { contractFile } from '../contract-file.ts'
import { memorySubject, openMemoryStore } from '../subjects/memory.ts'

const call = { attempt: 1, lockedRows: 'skip' } as const
let stores = 0

describe('the faulty driver', () => {
  let session: DriverSession
  let faults: Faults

  beforeEach(() => {
    const faulty = faultyDriver(memoryDriver({ store: `faulty ${++stores}` }))
    session = faulty.driver.open('test')
    faults = faulty.faults
  })

  const acquire = async (key = 'key', token = 'token') => {
    const request: AcquireRequest = { key, token, ttlMs: 60_000, holder: '{}', waitingMs: 0 }
    return (await session.locks.acquire([request], call))[0]?.outcome
  }
  const release = async (key = 'key', token = 'token') =>
    (await session.locks.release([{ key, token }], call))[0]?.outcome
  const isHeld = async (key = 'key') => (await session.locks.peek([key], call))[0] !== null
  const kindOf = async (calling: Promise<unknown>) =>
    calling.then(
      () => 'answered',
      (error: unknown) => (error instanceof DriverFault ? error.kind : String(error)),
    )

  it('passes everything on while nothing is planned', async () => {
    expect(await acquire()).toBe('granted')
    expect(await isHeld()).toBe(true)
    expect(await release()).toBe('released')
  })

  it('fails a call before it is made', async () => {
    faults.next('acquire').fail()
    expect(await kindOf(acquire())).toBe('not-sent')
    expect(await isHeld()).toBe(false)
    faults.next('acquire').fail('retry')
    expect(await kindOf(acquire())).toBe('retry')
    expect(await acquire()).toBe('granted')
  })

  it('loses the answer of a call that was applied', async () => {
    faults.next('acquire').loseAnswer()
    expect(await kindOf(acquire())).toBe('unknown')
    expect(await isHeld()).toBe(true)
  })

  it('holds a request until the test lets it go', async () => {
    const held = faults.next('acquire').holdRequest()
    const acquiring = acquire()
    await held.arrived
    expect(await isHeld()).toBe(false)
    held.letGo()
    expect(await acquiring).toBe('granted')
  })

  it('holds an answer until the test lets it go', async () => {
    const held = faults.next('acquire').holdAnswer()
    const acquiring = acquire()
    await held.arrived
    expect(await isHeld()).toBe(true)
    held.letGo()
    expect(await acquiring).toBe('granted')
  })

  it('lets a call hang, applied or not', async () => {
    faults.next('acquire').hang()
    faults.next('acquire').hangAfter()
    const settled: string[] = []
    for (const key of ['before', 'after']) void acquire(key).finally(() => settled.push(key))
    await acquire('other')
    expect(await isHeld('before')).toBe(false)
    expect(await isHeld('after')).toBe(true)
    expect(settled).toEqual([])
  })

  it('delivers a call twice', async () => {
    await acquire()
    faults.next('release').deliverTwice()
    expect(await release()).toBe('released')
    expect(await isHeld()).toBe(false)
  })

  it('delivers a call again later: a spent token is not granted by it', async () => {
    const again = faults.next('acquire').deliverAgainLater()
    expect(await acquire()).toBe('granted')
    await again.arrived
    expect(await release()).toBe('released')
    again.letGo()
    expect(await acquire('other')).toBe('granted')
    expect(await isHeld()).toBe(false)
  })

  it('plans call by call, in order, and each verb for itself', async () => {
    faults.next('acquire').fail()
    faults.next('acquire').loseAnswer()
    expect(await isHeld()).toBe(false)
    expect(await kindOf(acquire('one'))).toBe('not-sent')
    expect(await kindOf(acquire('two'))).toBe('unknown')
    expect(await acquire('three')).toBe('granted')
  })

  it('fails every call of a verb until it is healed', async () => {
    faults.always('peek').fail('unusable')
    expect(await kindOf(isHeld())).toBe('unusable')
    expect(await kindOf(isHeld())).toBe('unusable')
    faults.heal()
    expect(await isHeld()).toBe(false)
  })

  it('does what the test wants with a call', async () => {
    faults.next('acquire').do(async (pass) => {
      await pass()
      return [{ outcome: 'busy' }]
    })
    expect(await acquire()).toBe('busy')
    expect(await isHeld()).toBe(true)
  })

  it('counts calls, whatever became of them', async () => {
    faults.next('acquire').fail()
    await kindOf(acquire())
    await acquire()
    await release()
    expect([faults.calls('acquire'), faults.calls('release'), faults.calls('scan')]).toEqual([2, 1, 0])
    expect(faults.calls()).toBe(3)
  })

  it('reaches tasks and the push channel as well', async () => {
    for (const verb of ['poll', 'refreshRun', 'purgeLog', 'listen', 'probe'] as const)
      faults.next(verb).fail()
    const { tasks } = session
    expect(await kindOf(tasks.poll(call))).toBe('not-sent')
    expect(await kindOf(tasks.refresh([{ task: 't', token: 'x', ttlMs: 1_000 }], call))).toBe('not-sent')
    expect(await kindOf(tasks.purge({ retentionMs: 0, limit: 1 }, call))).toBe('not-sent')
    const listener = { onNotice: () => {}, onDeaf: () => {} }
    expect(await kindOf(session.listen?.(listener) as Promise<unknown>)).toBe('not-sent')
    const channel = await session.listen?.(listener)
    expect(await kindOf(channel?.probe() as Promise<unknown>)).toBe('not-sent')
    await channel?.probe()
    await session.close()
  })
})

// Around a driver that is right it must be right itself: no answer, order or error may change on the way.
contractFile({
  ...memorySubject,
  name: 'memory / in the faulty driver',
  open: async () => {
    const store = openMemoryStore('contract in the faulty driver')
    return { ...store, first: faultyDriver(store.first).driver, second: faultyDriver(store.second).driver }
  },
})
