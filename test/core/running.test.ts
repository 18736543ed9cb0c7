import { currentLease, type Lease, LeaseLostError, ReentrantAcquireError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { fail, hang } from './treatments.ts'
import { rest } from './virtual-time.ts'
import { eachWorld, type Worker } from './world.ts'

const world = eachWorld()

/** Takes the key away for good while its holder works. */
async function steal(key: string, thief: Worker): Promise<void> {
  await thief.locks.forceRelease(key, { immediate: true })
  await world().time.sleep(15_000)
}

describe('runExclusive', () => {
  it('runs the function under the lease and gives back what it returned', async () => {
    const { locks } = world().worker()
    const outcome = await world().until(
      locks.runExclusive('job', async (lease) => {
        expect(lease.isHeld()).toBe(true)
        await rest()
        return 42
      }),
    )
    expect(outcome).toEqual({ acquired: true, result: 42, lost: false })
    expect(await world().until(locks.peek('job'))).toBeNull()
  })

  it.each([
    ['a plain value', () => 5, 5],
    ['undefined', () => {}, undefined],
    // oxlint-disable-next-line unicorn/no-thenable -- some libraries return such
    ['a thenable', () => ({ then: (done: (value: number) => void) => done(7) }), 7],
  ])('takes a function that returns %s', async (_what, fn, result) => {
    const { locks } = world().worker()
    expect(await world().until(locks.runExclusive<unknown>('job', fn))).toEqual({
      acquired: true,
      result,
      lost: false,
    })
  })

  it('does not run it where the key is held, and says so', async () => {
    const [one, other] = [world().worker(), world().worker()]
    await one.hold('job')
    let ran = 0
    const locked: string[] = []
    const onLocked = (key: string) => locked.push(key)
    expect(await world().until(other.locks.runExclusive('job', () => ran++, { onLocked }))).toEqual({
      acquired: false,
    })
    expect(await world().until(other.locks.runExclusively('job', () => ran++, { onLocked }))).toBe('skipped')
    expect(await world().until(other.locks.exclusive('job', () => ran++, { onLocked })())).toBe('skipped')
    expect(ran).toBe(0)
    expect(locked).toEqual(['job', 'job', 'job'])
  })

  it('waits for what onLocked does, and passes its error on', async () => {
    const [one, other] = [world().worker(), world().worker()]
    await one.hold('job')
    const error = new Error('nobody home')
    const onLocked = async () => {
      await rest()
      throw error
    }
    await expect(world().until(other.locks.runExclusive('job', () => {}, { onLocked }))).rejects.toBe(error)
  })

  it('does not run it where nobody found out whether the key is held', async () => {
    const { locks } = world().worker()
    world().driver.always('everything', fail('not-sent'))
    let ran = 0
    await expect(world().until(locks.runExclusive('job', () => ran++))).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
    expect(ran).toBe(0)
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('mine')
      },
    ],
    ['rejects', () => Promise.reject(new Error('mine'))],
    [
      'throws no error at all',
      () => {
        // oxlint-disable-next-line typescript/only-throw-error -- what a careless function may do
        throw 'mine'
      },
    ],
  ])('passes on what the function %s, and releases (N58)', async (_how, fn) => {
    const { locks } = world().worker()
    const caught: unknown = await world().until(
      locks.runExclusive<unknown>('job', fn).catch((e: unknown) => e),
    )
    expect(caught instanceof Error ? caught.message : caught).toBe('mine')
    expect(await world().until(locks.peek('job'))).toBeNull()
  })

  it('passes the result on although the release fails (N6)', async () => {
    const { locks } = world().worker({ requestTimeout: '1s' })
    for (const treatment of [hang, fail('not-sent'), fail('unusable')]) {
      world().driver.always('release', treatment)
      const outcome = await world().until(locks.runExclusive(`job ${Math.random()}`, () => 'value'))
      expect(outcome).toEqual({ acquired: true, result: 'value', lost: false })
    }
  })

  it("passes the function's own error on although the release fails, and although the lease was lost", async () => {
    const [one, thief] = [world().worker({ requestTimeout: '1s' }), world().worker()]
    const mine = new Error('mine')
    world().driver.always('release', hang)
    const running = one.locks.runExclusive(
      'job',
      async () => {
        await steal('job', thief)
        throw mine
      },
      { onLost: 'reject' },
    )
    await expect(world().until(running)).rejects.toBe(mine)
  })

  it('returns the value with lost: true where the lease was lost while it ran (N6)', async () => {
    const [one, thief] = [world().worker(), world().worker()]
    let aborted = false
    const running = one.locks.runExclusive('job', async ({ signal }) => {
      await steal('job', thief)
      aborted = signal.aborted
      return 'value'
    })
    expect(await world().until(running)).toEqual({ acquired: true, result: 'value', lost: true })
    expect(aborted).toBe(true)
  })

  it('rejects with the value on board where that is asked for', async () => {
    const [one, thief] = [world().worker(), world().worker()]
    const running = one.locks.runExclusive(
      'job',
      async () => {
        await steal('job', thief)
        return 'value'
      },
      { onLost: 'reject' },
    )
    const error = await world().until(running.catch((e: unknown) => e))
    expect(error).toBeInstanceOf(LeaseLostError)
    expect(error).toMatchObject({ code: 'LEASE_LOST', key: 'job', reason: 'gone', value: 'value' })
  })

  it.each(['return', 'reject'] as const)(
    'with onLost: %s is content where nothing was lost',
    async (onLost) => {
      const { locks } = world().worker()
      expect(await world().until(locks.runExclusive('job', () => 1, { onLost }))).toMatchObject({
        lost: false,
      })
    },
  )

  it('knows a loss that nobody has looked at yet: the process stood still at the end of the work', async () => {
    const { clock, locks } = world().worker({ ttl: '1s' })
    const running = locks.runExclusive('job', async () => {
      clock.frozen = true
      await world().time.sleep(5_000)
    })
    await world().time.advance(5_000)
    clock.frozen = false
    expect(await world().until(running)).toMatchObject({ acquired: true, lost: true })
  })

  it('does not call it lost when the function itself released the lease', async () => {
    const { locks } = world().worker()
    const running = locks.runExclusive('job', async (lease) => {
      await lease.release()
      return 'early'
    })
    expect(await world().until(running)).toEqual({ acquired: true, result: 'early', lost: false })
    expect(world().driver.count('release')).toBe(1)
  })

  it('keeps renewing for as long as the function runs, and one at a time in the whole fleet (N29)', async () => {
    const workers = [
      world().worker({ ttl: '300ms' }),
      world().worker({ ttl: '300ms' }),
      world().worker({ ttl: '300ms' }),
    ]
    let running = 0
    let most = 0
    let ran = 0
    const work = async () => {
      most = Math.max(most, ++running)
      await world().time.sleep(600)
      running--
      ran++
    }
    await world().until(
      Promise.all(workers.map(({ locks }) => locks.runExclusive('job', work, { wait: Infinity }))),
    )
    expect([most, ran]).toEqual([1, 3])
  })

  it('passes signal, wait, ttl and label on to the acquire', async () => {
    const { locks } = world().worker()
    await world().until(locks.runExclusive('job', () => {}, { ttl: '5s', label: 'mine', wait: '1s' }))
    const [item] = world().driver.of('acquire')[0]?.items ?? []
    expect(item).toMatchObject({ ttlMs: 5_000 })
    expect((item as { holder?: string }).holder).toContain('"label":"mine"')
    await expect(locks.runExclusive('job', () => {}, { signal: AbortSignal.abort('no') })).rejects.toBe('no')
  })
})

describe('exclusive', () => {
  it('makes a function that takes the same arguments and answers whether it ran', async () => {
    const { locks } = world().worker()
    const seen: unknown[] = []
    const guarded = locks.exclusive('job', (a: number, b: string) => seen.push([a, b]))
    expect(await world().until(guarded(1, 'x'))).toBe('ran')
    expect(await world().until(guarded(2, 'y'))).toBe('ran')
    expect(seen).toEqual([
      [1, 'x'],
      [2, 'y'],
    ])
  })

  it('skips while it still runs from the call before', async () => {
    const { locks } = world().worker()
    const guarded = locks.exclusive('job', () => world().time.sleep(1_000))
    expect(await world().until(Promise.all([guarded(), guarded(), guarded()]))).toEqual([
      'ran',
      'skipped',
      'skipped',
    ])
  })
})

describe('the lease of the call chain', () => {
  it('is there in everything that the function calls, and nowhere else', async () => {
    const { locks } = world().worker()
    expect(currentLease()).toBeUndefined()
    const deep = async () => {
      await rest()
      return currentLease()
    }
    const outcome = locks.runExclusive('job', async (lease) => {
      expect(currentLease()).toBe(lease)
      expect(await deep()).toBe(lease)
      expect(await Promise.all([deep(), deep()])).toEqual([lease, lease])
      return true
    })
    expect(currentLease()).toBeUndefined()
    expect(await world().until(outcome)).toMatchObject({ result: true })
    expect(currentLease()).toBeUndefined()
  })

  it('is the right one in each of two parallel calls (N67)', async () => {
    const { locks } = world().worker()
    const seen: [string, string | undefined][] = []
    const work = (key: string) =>
      locks.runExclusive(key, async () => {
        for (let turn = 0; turn < 5; turn++) {
          seen.push([key, currentLease()?.key])
          await world().time.sleep(key.length * 7)
        }
      })
    await world().until(Promise.all([work('a'), work('bb'), work('ccc')]))
    expect(seen).toHaveLength(15)
    for (const [own, ambient] of seen) expect(ambient).toBe(own)
  })

  it('is the innermost of nested ones', async () => {
    const { locks } = world().worker()
    const seen: (string | undefined)[] = []
    await world().until(
      locks.runExclusive('outer', async () => {
        await locks.runExclusive('inner', () => seen.push(currentLease()?.key))
        seen.push(currentLease()?.key)
      }),
    )
    expect(seen).toEqual(['inner', 'outer'])
  })

  it('is not seen by work that outlives it', async () => {
    const { locks } = world().worker()
    let detached: Promise<Lease | undefined> | undefined
    await world().until(
      locks.runExclusive('job', () => {
        detached = world()
          .time.sleep(1_000)
          .then(() => currentLease())
      }),
    )
    expect(await world().until(detached ?? Promise.reject(new Error('It did not run.')))).toBeUndefined()
  })

  it('does not leak into the abort listeners of other leases, which the shared timers call (N67)', async () => {
    const { locks, hold } = world().worker({ ttl: '1s' })
    const other = await hold('other', { heartbeat: false })
    let seen: unknown = 'nothing'
    other.signal.addEventListener('abort', () => (seen = currentLease()?.key))
    const running = locks.runExclusive('job', async () => {
      // For the inner lease the shared timers are set anew, within this chain.
      await locks.acquire('inner', { ttl: 200, heartbeat: 50 })
      await world().time.sleep(2_000)
    })
    await world().until(running)
    expect(other.isHeld()).toBe(false)
    expect(seen).toBeUndefined()
  })
})

describe('acquiring a key that the call chain holds already (N66)', () => {
  it('fails at once instead of waiting for itself', async () => {
    const { locks } = world().worker()
    world().driver.forget()
    const nested = locks.runExclusive('job', async () => {
      world().driver.forget()
      const errors = await Promise.all(
        [
          () => locks.acquire('job', { wait: Infinity }),
          () => locks.runExclusive('job', () => {}, { wait: '1h' }),
          locks.exclusive('job', () => {}),
        ].map((call) => call().catch((error: unknown) => error)),
      )
      expect(world().driver.count()).toBe(0)
      return errors
    })
    const outcome = await world().until(nested)
    if (!outcome.acquired) throw new Error('It did not run.')
    for (const error of outcome.result) {
      expect(error).toBeInstanceOf(ReentrantAcquireError)
      expect(error).toMatchObject({ code: 'REENTRANT_ACQUIRE', key: 'job' })
    }
  })

  it('also through another lease in between, and through another service on the same store', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const nested = one.locks.runExclusive('job', () =>
      one.locks.runExclusive('inner', () =>
        other.locks.acquire('job', { wait: Infinity }).catch((error: unknown) => error),
      ),
    )
    expect(await world().until(nested)).toMatchObject({ result: { result: { code: 'REENTRANT_ACQUIRE' } } })
  })

  it('is fine in another namespace, with another key, and in a parallel chain', async () => {
    const [one, elsewhere] = [world().worker(), world().worker({ namespace: 'elsewhere' })]
    await world().until(
      one.locks.runExclusive('job', async () => {
        expect(await elsewhere.locks.acquire('job')).not.toBeNull()
        expect(await one.locks.acquire('other job')).not.toBeNull()
      }),
    )
    const runs = [1, 2, 3].map(() =>
      one.locks.runExclusive('job', () => world().time.sleep(10), { wait: Infinity }),
    )
    expect((await world().until(Promise.all(runs))).every(({ acquired }) => acquired)).toBe(true)
  })

  it('is fine for work that outlives the lease, and after the lease was lost', async () => {
    const [one, thief] = [world().worker(), world().worker()]
    let detached: Promise<unknown> = Promise.resolve()
    await world().until(
      one.locks.runExclusive('job', () => {
        detached = world()
          .time.sleep(1_000)
          .then(() => one.locks.acquire('job'))
      }),
    )
    const lease = (await world().until(detached)) as Lease
    expect(lease.isHeld()).toBe(true)
    await world().until(lease.release())
    const running = one.locks.runExclusive('job', async () => {
      await steal('job', thief)
      return one.locks.acquire('job')
    })
    expect(await world().until(running)).toMatchObject({ acquired: true, result: { key: 'job' }, lost: true })
  })
})
