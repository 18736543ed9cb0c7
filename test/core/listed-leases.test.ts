import { connect, InvalidOptionError, LockService } from 'leasehold'
import { memoryDriver } from 'leasehold/memory'
import { describe, expect, it } from 'vitest'

describe('what is listed can be looked up and taken away', () => {
  const service = (): LockService =>
    new LockService({ driver: memoryDriver({ store: `listed-${Math.random()}` }), namespace: 'listed' })

  for (const [what, key] of [
    ['a long key', 'x'.repeat(1_000)],
    ['a key with NUL', 'a\0b'],
    ['a key that looks like a stored one', 'sha256:abc'],
    ['a short key', 'plain'],
  ] as const) {
    it(`${what}, by the lease that list() shows`, async () => {
      await using locks = service()
      const lease = await locks.acquire(key)
      const [shown] = await locks.list()
      if (shown === undefined || lease === null) throw new Error('nothing is listed')
      expect((await locks.peek(shown))?.fence).toBe(lease.fence)
      expect(await locks.forceRelease(shown, { fence: shown.fence, immediate: true })).toBe('released')
      expect(await locks.peek(key)).toBeNull()
    })
  }

  it('a stored form as a string is another key, so that two keys never meet', async () => {
    await using locks = service()
    await locks.acquire('x'.repeat(1_000))
    const [shown] = await locks.list()
    expect(await locks.peek(shown?.key ?? '')).toBeNull()
  })

  it('refuses an object that is no shown lease', async () => {
    await using locks = service()
    for (const odd of [{}, { key: '' }, { key: 7 }, { key: 'a\0b' }, { key: 'x'.repeat(256) }]) {
      await expect(locks.peek(odd as never)).rejects.toBeInstanceOf(InvalidOptionError)
      await expect(locks.forceRelease(odd as never)).rejects.toBeInstanceOf(InvalidOptionError)
    }
  })
})

it('a lease that its holder released says so, and not that the store forgot it', async () => {
  await using locks = new LockService()
  const lease = await locks.acquire(`released-${Math.random()}`)
  await lease?.release()
  expect(() => lease?.assertHeld()).toThrow(expect.objectContaining({ reason: 'released' }))
  expect(lease?.lossReason).toBeNull()
})

it('connect() names its own options when one is misspelt', async () => {
  await expect(connect('memory:', { namespce: 'x' } as never)).rejects.toThrow(
    /connect has no option "namespce".*client/,
  )
  await expect(connect('memory:', null as never)).rejects.toBeInstanceOf(InvalidOptionError)
  await expect(connect('')).rejects.toThrow(/is empty/)
})
