import type { Timer } from 'leasehold'
import { type Batchers, bentBatcher, type Bug, bug, outcome } from './bug.ts'
import * as checks from './checks.ts'
import { limitBugs } from './limit-bugs.ts'

/** Ways to get the core wrong. */
export const bugs: readonly Bug[] = [
  bug(
    'the deadline is counted from the answer',
    'batcher',
    [checks.trustBeginsBeforeTheRequest],
    ({ Batcher }) => ({
      Batcher: bentBatcher(Batcher, (sent, clock) =>
        sent.kind === 'answered'
          ? { ...sent, sentAt: { monotonic: clock.monotonic(), wall: clock.wall() } }
          : sent,
      ),
    }),
  ),
  bug(
    'the deadline is the ttl from now, whatever the store said',
    'hold',
    [checks.trustIsWhatTheStoreSaid],
    ({ Hold }) => ({
      Hold: class extends Hold {
        constructor(options: ConstructorParameters<typeof Hold>[0]) {
          super({ ...options, remainingMs: options.lease.ttlMs })
        }
      },
    }),
  ),
  bug(
    'an older answer moves the deadline back',
    'deadline',
    [checks.anOlderAnswerMovesNothing],
    ({ Deadline, safetyMargin }) => ({
      Deadline: class extends Deadline {
        #at = 0

        override confirm(
          ...[sentAt, remainingMs]: Parameters<InstanceType<typeof Deadline>['confirm']>
        ): boolean {
          // The constructor of the class above calls this before there is a field to write to.
          if (#at in this) this.#at = sentAt.monotonic + remainingMs - safetyMargin(remainingMs)
          return super.confirm(sentAt, remainingMs)
        }

        override remainingAt(now: Parameters<InstanceType<typeof Deadline>['remainingAt']>[0]): number {
          return this.#at === 0 ? super.remainingAt(now) : Math.max(0, this.#at - now.monotonic)
        }
      },
    }),
  ),
  bug('an answer after the loss brings the lease back', 'hold', [checks.aLossIsFinal], ({ Hold }) => ({
    Hold: class extends Hold {
      override get isHeld(): boolean {
        return this.deadline.remainingMs > 0
      }
    },
  })),
  bug(
    'a key is in a batch as often as it is asked for',
    'batcher',
    [checks.aKeyIsOnceInABatch],
    ({ Batcher }) => ({
      Batcher: class extends Batcher<unknown, unknown> {
        constructor(options: ConstructorParameters<typeof Batcher<unknown, unknown>>[0]) {
          let count = 0
          super({ ...options, keyOf: () => String(count++) })
        }
      } as unknown as Batchers,
    }),
  ),
  bug(
    'the token of an abandoned acquire is forgotten',
    'acquisition',
    [checks.anAbandonedTokenIsReleased],
    ({ Acquisition }) => ({
      Acquisition: class extends Acquisition {
        override abandon(): void {}
      },
    }),
  ),
  bug(
    'the token of an abandoned acquire is released at once and never again',
    'give-back',
    [checks.anAbandonedTokenIsReleased, checks.anAbandonedTokenIsReleasedAgain],
    ({ Abandonments }) => ({
      Abandonments: class extends Abandonments {
        override followUp(): void {}
      },
    }),
  ),
  bug('busy is taken for lost', 'batcher', [checks.busyIsNotLost], ({ Batcher }) => ({
    Batcher: bentBatcher(Batcher, (sent) =>
      sent.kind === 'answered' && outcome(sent.answer) === 'busy'
        ? { ...sent, answer: { outcome: 'lost', reason: 'gone' } }
        : sent,
    ),
  })),
  bug('busy is taken for held', 'batcher', [checks.busyIsNotHeld], ({ Batcher }) => ({
    Batcher: bentBatcher(Batcher, (sent) =>
      sent.kind === 'answered' && outcome(sent.answer) === 'busy'
        ? { ...sent, answer: { outcome: 'held', remainingMs: 1_000 } }
        : sent,
    ),
  })),
  bug('a failed renewal is taken for lost', 'batcher', [checks.oneFailedRenewalIsNoLoss], ({ Batcher }) => ({
    Batcher: bentBatcher(Batcher, (sent) =>
      sent.kind === 'failed' ? { kind: 'answered', answer: { outcome: 'lost', reason: 'gone' } } : sent,
    ),
  })),
  bug(
    'the answer to a renewal that was given up is thrown away',
    'batcher',
    [checks.slowAnswersCount],
    ({ Batcher }) => ({
      Batcher: bentBatcher(Batcher, (sent) =>
        sent.kind === 'failed' ? { ...sent, settled: Promise.resolve(null) } : sent,
      ),
    }),
  ),
  bug(
    'a repeated try queues up behind the calls that hang',
    'batcher',
    [checks.aRetryHasItsOwnWay],
    ({ Batcher }) => ({
      Batcher: class extends Batcher<unknown, unknown> {
        override submit(
          ...[request, options]: Parameters<InstanceType<Batchers>['submit']>
        ): ReturnType<InstanceType<Batchers>['submit']> {
          return super.submit(request, { ...options, attempt: 1 })
        }
      } as unknown as Batchers,
    }),
  ),
  bug(
    'a wake-up is heard only by who sleeps already',
    'waiting-room',
    [checks.noWakeUpIsSleptThrough],
    ({ WaitingRoom }) => ({
      WaitingRoom: class extends WaitingRoom {
        #isAsking = false

        override wait(
          ...[key, acquisition, options]: Parameters<InstanceType<typeof WaitingRoom>['wait']>
        ): ReturnType<InstanceType<typeof WaitingRoom>['wait']> {
          const attempt = acquisition.attempt.bind(acquisition)
          acquisition.attempt = async (waitingMs) => {
            this.#isAsking = true
            try {
              return await attempt(waitingMs)
            } finally {
              this.#isAsking = false
            }
          }
          return super.wait(key, acquisition, options)
        }

        override wake(key: string | null): void {
          if (!this.#isAsking) super.wake(key)
        }
      },
    }),
  ),
  bug(
    'nobody looks again once the subscription is confirmed',
    'wake-ups',
    [checks.aSubscriptionIsFollowedByALook],
    ({ WakeUps }) => ({
      WakeUps: class extends WakeUps {
        constructor(options: ConstructorParameters<typeof WakeUps>[0]) {
          super({ ...options, onWake: (key) => key !== null && options.onWake(key) })
        }

        override async ready(): Promise<void> {}
      },
    }),
  ),
  bug('every waiter asks for itself', 'waiting-room', [checks.oneWaiterPerKey], ({ WaitingRoom }) => ({
    WaitingRoom: class extends WaitingRoom {
      #count = 0

      override wait(
        ...[key, acquisition, options]: Parameters<InstanceType<typeof WaitingRoom>['wait']>
      ): ReturnType<InstanceType<typeof WaitingRoom>['wait']> {
        return super.wait(`${key} ${this.#count++}`, acquisition, options)
      }

      override wake(): void {
        super.wake(null)
      }
    },
  })),
  bug(
    'a wait ends with null whatever is outstanding',
    'waiting-room',
    [checks.anOutstandingAnswerIsNoAnswer],
    ({ WaitingRoom }) => ({
      WaitingRoom: class extends WaitingRoom {
        readonly #clock: { setTimer(delayMs: number, callback: () => void): Timer }

        constructor(options: ConstructorParameters<typeof WaitingRoom>[0]) {
          super(options)
          this.#clock = options.clock
        }

        override wait(
          ...[key, acquisition, options]: Parameters<InstanceType<typeof WaitingRoom>['wait']>
        ): ReturnType<InstanceType<typeof WaitingRoom>['wait']> {
          const over = new Promise<null>((resolve) => {
            this.#clock.setTimer(options.waitMs, () => resolve(null))
          })
          return Promise.race([super.wait(key, acquisition, options), over])
        }
      },
    }),
  ),
  bug(
    'a store that is down is taken for a key that is held',
    'acquisition',
    [checks.aStoreThatIsDownIsNoAnswer, checks.anOutstandingAnswerIsNoAnswer],
    ({ Acquisition }) => ({
      Acquisition: class extends Acquisition {
        override async attempt(waitingMs: number): ReturnType<InstanceType<typeof Acquisition>['attempt']> {
          const attempt = await super.attempt(waitingMs)
          return attempt.kind === 'unavailable' ? { kind: 'held', remainingMs: 1_000 } : attempt
        }
      },
    }),
  ),
  bug('timers are handed to Node as they are', 'clock', [checks.timersGoTheDistance], ({ systemClock }) => ({
    systemClock: {
      ...systemClock,
      setTimer: (delayMs, callback) => {
        const handle = setTimeout(callback, delayMs)
        return { cancel: () => clearTimeout(handle) }
      },
    },
  })),
  bug('the signal is a stock one', 'lease-signal', [checks.theSignalKnowsAtOnce], () => ({
    leaseSignal: ({ signal }) => signal,
  })),
  bug(
    'the signal looks at the clocks in aborted alone',
    'lease-signal',
    [checks.theSignalKnowsAtOnce],
    ({ leaseSignal }) => ({
      leaseSignal: (controller, source) => {
        const signal = leaseSignal(controller, source)
        Object.defineProperty(signal, 'throwIfAborted', {
          value: () => AbortSignal.prototype.throwIfAborted.call(signal),
        })
        return signal
      },
    }),
  ),
  bug(
    'a release throws where the store does not answer',
    'give-back',
    [checks.aReleaseNeverThrows, checks.theResultIsNotReplaced],
    ({ giveBack }) => ({
      giveBack: async (...args) => {
        const released = await giveBack(...args)
        if (released === 'unknown') throw new Error('The lease could not be released.')
        return released
      },
    }),
  ),
  bug('any fence is accepted', 'fence-ledger', [checks.aFenceNeverGoesBack], ({ FenceLedger }) => ({
    FenceLedger: class extends FenceLedger {
      override accept(): boolean {
        return true
      }
    },
  })),
  bug('the wall clock is not looked at', 'deadline', [checks.theWallClockCounts], ({ Deadline }) => ({
    Deadline: class extends Deadline {
      override remainingAt({
        monotonic,
      }: Parameters<InstanceType<typeof Deadline>['remainingAt']>[0]): number {
        return super.remainingAt({ monotonic, wall: -Infinity })
      }
    },
  })),
  bug('the wall clock alone is looked at', 'deadline', [checks.theMonotonicClockCounts], ({ Deadline }) => ({
    Deadline: class extends Deadline {
      override remainingAt({ wall }: Parameters<InstanceType<typeof Deadline>['remainingAt']>[0]): number {
        return super.remainingAt({ monotonic: -Infinity, wall })
      }
    },
  })),
  bug('only a renewal tells of a loss', 'deadline', [checks.theLossComesFirst], ({ DeadlineWatch }) => ({
    DeadlineWatch: class extends DeadlineWatch {
      override watch(): void {}
    },
  })),
  bug('what has ended is not forgotten', 'heartbeat', [checks.nothingIsLeft], ({ Heartbeat }) => ({
    Heartbeat: class extends Heartbeat {
      override forget(): void {}
    },
  })),
  bug('a lease lives for as long as it is renewed', 'hold', [checks.aLifetimeEnds], ({ Hold }) => ({
    Hold: class extends Hold {
      constructor(options: ConstructorParameters<typeof Hold>[0]) {
        super({ ...options, lease: { ...options.lease, maxLifetimeMs: Infinity } })
      }
    },
  })),
  bug('nobody looks at what the call chain holds', 'ambient', [checks.noChainWaitsForItself], () => ({
    heldInChain: () => undefined,
  })),
  bug('shared timers carry the context of whoever set them', 'clock', [checks.chainsAreNotMixed], () => ({
    inOwnContext: (clock) => clock,
  })),
  ...limitBugs,
]
