import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { DriverSession } from 'leasehold/driver'
import { redisDriver } from 'leasehold/redis'
import { DriverFault } from '../../../src/core/errors.ts'
import { freshNamespace, redisUrl } from '../../support/stores.ts'
import { openClient, type OpenClient } from './clients.ts'
import { call, claimOf, faultOf, grant, registration, scanAll, wanted } from './requests.ts'

let opened: OpenClient
let namespace: string
let session: DriverSession

beforeAll(async () => {
  opened = await openClient('ioredis 6', await redisUrl())
})
afterAll(() => opened.close())
beforeEach(() => {
  namespace = freshNamespace()
  session = redisDriver(opened.client).open(namespace)
})

const nameOf = (rest: string) => `{leasehold:${namespace}}:${rest}`

const foreign: Record<string, (name: string) => Promise<unknown>> = {
  'a list': (name) => opened.send('rpush', name, 'foreign'),
  'a hash': (name) => opened.send('hset', name, 'foreign', '1'),
  'another lock’s string': (name) => opened.send('set', name, 'b5f1c0de', 'px', '60000'),
  'an empty string': (name) => opened.send('set', name, ''),
  'a record of a later version': (name) => opened.send('set', name, `2 ${'1'.repeat(16)} `.repeat(5)),
  'a record with letters for numbers': (name) => opened.send('set', name, `1 ${'x'.repeat(200)}`),
}

describe.each(Object.keys(foreign))('a key that holds %s', (what) => {
  const plant = async () => foreign[what]?.(nameOf('k:b'))
  const dump = () => opened.send('dump', nameOf('k:b'))

  it('fails its own item of an acquire, and the others are granted', async () => {
    await plant()
    const before = await dump()
    const answers = await session.locks.acquire([wanted('a'), wanted('b'), wanted('c')], call)
    expect(answers.map(({ outcome }) => outcome)).toEqual(['granted', 'failed', 'granted'])
    const [, failed] = answers
    if (failed?.outcome !== 'failed') throw new Error('not failed')
    expect(failed.error).toBeInstanceOf(DriverFault)
    expect(failed.error).toMatchObject({ kind: 'unusable', message: expect.stringContaining(nameOf('k:b')) })
    expect(await session.locks.peek(['a', 'c'], call)).toMatchObject([{ key: 'a' }, { key: 'c' }])
    expect(await dump()).toEqual(before)
  })

  it('fails its own item of a refresh and of a release', async () => {
    const leases = [await grant(session, 'a'), await grant(session, 'b'), await grant(session, 'c')]
    await opened.send('del', nameOf('k:b'))
    await plant()
    const before = await dump()
    const renewed = await session.locks.refresh(leases, call)
    expect(renewed.map(({ outcome }) => outcome)).toEqual(['held', 'failed', 'held'])
    const released = await session.locks.release(leases, call)
    expect(released.map(({ outcome }) => outcome)).toEqual(['released', 'failed', 'released'])
    expect(await dump()).toEqual(before)
  })

  it('fails a revocation, and a peek as a whole, which never guesses', async () => {
    await plant()
    expect(await session.locks.revoke({ key: 'b', fence: 1, immediate: true }, call)).toMatchObject({
      outcome: 'failed',
    })
    expect(await faultOf(session.locks.peek(['a', 'b'], call))).toMatchObject({ kind: 'unusable' })
  })

  it('is left out of a scan', async () => {
    await grant(session, 'a')
    await plant()
    expect((await scanAll(session)).records).toMatchObject([{ key: 'a' }])
  })
})

describe('a task whose key holds something foreign', () => {
  const failing = ['t:b', 'r:b'] as const

  it.each(failing)('fails its own item, and nothing of it is applied (%s)', async (rest) => {
    await opened.send('set', nameOf(rest), 'foreign')
    const names = ['a', 'b', 'c']
    const registered = await session.tasks.register(
      names.map((name) => registration(name)),
      call,
    )
    expect(registered.map(({ outcome }) => outcome)).toEqual(['created', 'failed', 'created'])
    const claimed = await session.tasks.claim(
      names.map((name) => claimOf(name, 5, 4)),
      call,
    )
    expect(claimed.map(({ outcome }) => outcome)).toEqual(['decided', 'failed', 'decided'])
    const completed = await session.tasks.complete(
      names.map((task) => ({
        task,
        slot: 5,
        attempt: 1,
        fence: 1,
        outcome: 'failed' as const,
        reason: null,
        error: null,
      })),
      call,
    )
    expect(completed.map(({ outcome }) => outcome)).toEqual(['late', 'failed', 'late'])
    expect(await opened.send('get', nameOf(rest))).toBe('foreign')
    expect(await opened.send('exists', nameOf(rest === 't:b' ? 'r:b' : 't:b'))).toBe(0)
    expect(await opened.send('smembers', nameOf('i'))).not.toContain('b')
  })

  it('fails its own item of a renewal, and its own control', async () => {
    await opened.send('hset', nameOf('t:b'), 'foreign', '1')
    await session.tasks.register([registration('a')], call)
    const renewed = await session.tasks.refresh(
      ['a', 'b'].map((task) => ({ task, token: 'token', ttlMs: 1_000 })),
      call,
    )
    expect(renewed.map(({ outcome }) => outcome)).toEqual(['lost', 'failed'])
    expect(
      await session.tasks.control({ task: 'b', kind: 'pause', requestId: '1', by: '', fence: null }, call),
    ).toMatchObject({ outcome: 'failed' })
    expect((await session.tasks.poll(call)).version).toBe(0)
  })

  it.each(['c', 'i', 'e'])(
    'fails the whole call before anything is written if all share it (%s)',
    async (rest) => {
      const name = nameOf(rest)
      await opened.send('hset', name, 'foreign', '1')
      for (const calling of [
        () => session.tasks.register([registration('a')], call),
        () => session.tasks.claim([claimOf('a', 5, 4)], call),
      ]) {
        expect(await faultOf(calling())).toMatchObject({ kind: 'unusable' })
      }
      expect(await opened.send('keys', nameOf('*'))).toEqual([name])
    },
  )

  it('fails the whole call if the control version is no number', async () => {
    await opened.send('set', nameOf('c'), 'many')
    expect(await faultOf(session.tasks.register([registration('a')], call))).toMatchObject({
      kind: 'unusable',
    })
    expect(await opened.send('keys', nameOf('*'))).toEqual([nameOf('c')])
  })
})
