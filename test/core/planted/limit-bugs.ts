import { AsyncLocalStorage } from 'node:async_hooks'
import { DriverFault, type DriverFaultKind, type Lease, type Timer } from 'leasehold'
import { type Batchers, type Bug, bug } from './bug.ts'
import * as checks from './limit-checks.ts'

type Watch = InstanceType<typeof import('../../../src/core/deadline.ts').DeadlineWatch>
type Member = Parameters<Watch['watch']>[0]

/** A batcher to whose driver faults of one kind are faults of another. */
function mistaking(Batcher: Batchers, kind: DriverFaultKind, wrong: DriverFaultKind): Batchers {
  return class extends Batcher<unknown, unknown> {
    constructor(options: ConstructorParameters<typeof Batcher<unknown, unknown>>[0]) {
      const send: typeof options.send = async (requests, call) => {
        try {
          return await options.send(requests, call)
        } catch (error) {
          if (!(error instanceof DriverFault) || error.kind !== kind) throw error
          throw new DriverFault(wrong, error.message)
        }
      }
      super({ ...options, send })
    }
  } as unknown as Batchers
}

/** Ways to get the limits of the core wrong. */
export const limitBugs: readonly Bug[] = [
  bug('the deadline rings at the deadline', 'deadline', [checks.theSignalIsEarly], ({ DeadlineWatch }) => ({
    DeadlineWatch: class extends DeadlineWatch {
      readonly #later = new Map<Member, Member>()

      override watch(member: Member): void {
        const { deadline } = member
        const later = {
          deadlinePassed: () => member.deadlinePassed(),
          deadline: {
            get remainingMs() {
              return deadline.remainingMs + 10
            },
            remainingAt: (now: Parameters<typeof deadline.remainingAt>[0]) => {
              const left = deadline.remainingAt(now)
              return left > 0 ? left + 10 : 0
            },
          },
        } as Member
        this.#later.set(member, later)
        super.watch(later)
      }

      override forget(member: Member): void {
        super.forget(this.#later.get(member) ?? member)
      }
    },
  })),
  bug(
    'nobody looks at the clocks before the deadline',
    'deadline',
    [checks.somebodyLooksAfterASuspend],
    ({ DeadlineWatch }) => ({
      DeadlineWatch: class extends DeadlineWatch {
        readonly #clock: ConstructorParameters<typeof DeadlineWatch>[0]
        readonly #timers = new Map<Member, Timer>()

        constructor(clock: ConstructorParameters<typeof DeadlineWatch>[0]) {
          super(clock)
          this.#clock = clock
        }

        override watch(member: Member): void {
          const ring = () => (member.deadline.remainingMs > 10 ? this.watch(member) : member.deadlinePassed())
          this.#timers.set(member, this.#clock.setTimer(Math.max(0, member.deadline.remainingMs - 10), ring))
        }

        override forget(member: Member): void {
          this.#timers.get(member)?.cancel()
        }
      },
    }),
  ),
  bug(
    'a grant is not looked at when it arrives',
    'deadline',
    [checks.aLateGrantIsNoLease],
    ({ Deadline }) => ({
      Deadline: class extends Deadline {
        readonly #isFirstLook: boolean

        constructor(...args: ConstructorParameters<typeof Deadline>) {
          super(...args)
          // The deadline of a lease has a fourth argument: the end of its lifetime.
          this.#isFirstLook = args.length < 4
        }

        override get remainingMs(): number {
          return this.#isFirstLook ? 1 : super.remainingMs
        }
      },
    }),
  ),
  bug(
    'a lease lives for a day at most, whatever its ttl',
    'options',
    [checks.aLongTtlLasts],
    ({ resolveAcquireOptions }) => ({
      resolveAcquireOptions: (...args) => {
        const { lease, ...resolved } = resolveAcquireOptions(...args)
        return {
          ...resolved,
          lease: { ...lease, maxLifetimeMs: Math.min(lease.maxLifetimeMs, 86_400_000) },
        }
      },
    }),
  ),
  bug('a bad item fails its batch', 'batcher', [checks.aBadItemSpoilsNoOther], ({ Batcher }) => ({
    Batcher: mistaking(Batcher, 'bad-item', 'unusable'),
  })),
  bug('a deadlock is reported to the caller', 'batcher', [checks.aDeadlockIsTriedAgain], ({ Batcher }) => ({
    Batcher: mistaking(Batcher, 'retry', 'not-sent'),
  })),
  bug('keys go to the store as they are', 'stored-key', [checks.anyKeyIsStorable], () => ({
    toStoredKey: (_option, key) => String(key),
  })),
  bug('a batch is as large as it gets', 'batcher', [checks.batchesKeepToTheirLimit], ({ Batcher }) => ({
    Batcher: class extends Batcher<unknown, unknown> {
      constructor(options: ConstructorParameters<typeof Batcher<unknown, unknown>>[0]) {
        super({ ...options, maxBatch: Infinity })
      }
    } as unknown as Batchers,
  })),
  bug('a lease that has ended still counts in its call chain', 'ambient', [checks.detachedWorkIsFree], () => {
    const chains = new AsyncLocalStorage<readonly Lease[]>()
    const heldInChain = (matches: (lease: Lease) => boolean) => chains.getStore()?.find(matches)
    return {
      heldInChain,
      currentLease: () => heldInChain(() => true),
      runInside: (lease, fn) => chains.run([lease, ...(chains.getStore() ?? [])], fn),
    }
  }),
  bug(
    'released records are kept for an hour',
    'options',
    [checks.releasedRecordsAreForgotten],
    ({ resolveLockServiceOptions }) => ({
      resolveLockServiceOptions: (options) => ({
        ...resolveLockServiceOptions(options),
        retentionMs: 3_600_000,
      }),
    }),
  ),
]
