import { DriverFault } from 'leasehold'
import type { AcquireAnswer, AcquireRequest, CallOptions, Driver, LockDriver } from 'leasehold/driver'
import type { SeededRandom } from '../../../src/testing/seeded-random.ts'
import type { VirtualTime, WorkerClock } from '../virtual-time.ts'

/** Hears what the store answered, the moment it did: before the answer has travelled, if it ever arrives. */
export interface LinkListener {
  onGranted(key: string, token: string, fence: number): void
  onHeld(key: string): void
}

/**
 * The way of one process to the store: slow, lossy, repeating itself, down at times. Whatever it does to a call is
 * drawn from the seed. Answers do not reach a process that stands still.
 */
export class Link {
  /** Every call hangs or fails until this moment. */
  downUntil = 0
  /** Nothing goes wrong any more. */
  isHealed = false
  /** The process is dead: nothing reaches it, or comes from it. */
  isCut = false
  readonly driver: Driver
  readonly #time: VirtualTime
  readonly #clock: WorkerClock
  readonly #random: SeededRandom
  readonly #undelivered: (() => void)[] = []

  constructor(
    inner: Driver,
    time: VirtualTime,
    clock: WorkerClock,
    random: SeededRandom,
    listener: LinkListener,
  ) {
    this.#time = time
    this.#clock = clock
    this.#random = random
    this.driver = {
      ...inner,
      open: (namespace) => {
        const session = inner.open(namespace)
        return {
          ...session,
          close: () => session.close(),
          locks: this.#locks(session.locks, listener),
          listen: inner.abilities.push
            ? (noticeListener) =>
                this.#send(async () => {
                  const channel = await session.listen?.({
                    onDeaf: (error) => noticeListener.onDeaf(error),
                    onNotice: (notice) => {
                      // A message may be lost, and takes its time.
                      if (this.isCut || (!this.isHealed && this.#random.next() < 0.1)) return
                      void this.#arrive(this.#random.integer(20)).then(() => noticeListener.onNotice(notice))
                    },
                  })
                  if (channel === undefined) throw new DriverFault('unusable', 'No push.')
                  return { probe: () => this.#send(() => channel.probe()), close: () => channel.close() }
                })
            : undefined,
        }
      },
    }
  }

  #locks(locks: LockDriver, listener: LinkListener): LockDriver {
    const acquire = async (
      requests: readonly AcquireRequest[],
      call: CallOptions,
    ): Promise<readonly AcquireAnswer[]> => {
      const answers = await locks.acquire(requests, call)
      for (const [index, answer] of answers.entries()) {
        const { key, token } = requests[index] as AcquireRequest
        if (answer.outcome === 'granted') listener.onGranted(key, token, answer.fence)
        if (answer.outcome === 'held') listener.onHeld(key)
      }
      return answers
    }
    return {
      acquire: (requests, call) => this.#send(() => acquire(requests, call), refused(requests)),
      refresh: (requests, call) => this.#send(() => locks.refresh(requests, call), refused(requests)),
      release: (requests, call) => this.#send(() => locks.release(requests, call), refused(requests)),
      revoke: (request, call) => this.#send(() => locks.revoke(request, call)),
      peek: (keys, call) => this.#send(() => locks.peek(keys, call)),
      scan: (request, call) => this.#send(() => locks.scan(request, call)),
      purge: (request, call) => this.#send(() => locks.purge(request, call)),
    }
  }

  /** @param refuse an answer that says of every item that it was not carried out */
  async #send<Answer>(
    pass: () => Promise<Answer>,
    refuse?: (outcome: 'busy' | 'failed') => Answer,
  ): Promise<Answer> {
    const random = this.#random
    if (this.isCut) return never()
    if (this.isHealed) return pass()
    if (this.#time.now < this.downUntil) {
      if (random.next() < 0.5) return never()
      await this.#arrive(random.integer(30))
      throw new DriverFault('not-sent', 'The store is down.')
    }
    const chance = random.next()
    const shortMs = (): number => random.integer(40)
    const longMs = (): number => random.integer(3_000)
    if (chance < 0.7) return this.#carry(shortMs(), shortMs(), pass)
    if (chance < 0.78) return this.#carry(longMs(), shortMs(), pass)
    if (chance < 0.86) return this.#carry(shortMs(), longMs(), pass)
    if (chance < 0.88) return never()
    if (chance < 0.9) {
      await this.#carry(shortMs(), 0, pass)
      return never()
    }
    if (chance < 0.92) {
      await this.#carry(shortMs(), shortMs(), pass)
      throw new DriverFault('unknown', 'The connection was cut.')
    }
    if (chance < 0.94) {
      // Cut before anything was sent, as far as anybody can tell; and then a client library sends it again.
      this.#deliverLater(longMs(), pass)
      throw new DriverFault('unknown', 'The connection was cut.')
    }
    if (chance < 0.96) {
      this.#deliverLater(longMs(), pass)
      return this.#carry(shortMs(), shortMs(), pass)
    }
    if (chance < 0.97) throw new DriverFault('retry', 'Deadlock.')
    if (chance < 0.98) throw new DriverFault('not-sent', 'No connection.')
    if (refuse !== undefined) {
      await this.#arrive(shortMs())
      return refuse(random.pick(['busy', 'failed']))
    }
    return this.#carry(shortMs(), shortMs(), pass)
  }

  async #carry<Answer>(thereMs: number, backMs: number, pass: () => Promise<Answer>): Promise<Answer> {
    if (thereMs > 0) await this.#time.sleep(thereMs)
    const answer = await pass()
    await this.#arrive(backMs)
    return answer
  }

  #deliverLater(afterMs: number, pass: () => Promise<unknown>): void {
    // Nobody waits for the answer, whatever it is.
    this.#time
      .sleep(afterMs)
      .then(pass)
      .catch(() => {})
  }

  /** The process goes on: what has arrived meanwhile reaches it. */
  thaw(): void {
    for (const deliver of this.#undelivered.splice(0)) deliver()
  }

  /** Reaches the process after so long, but no process that stands still or is dead. */
  async #arrive(afterMs: number): Promise<void> {
    if (afterMs > 0) await this.#time.sleep(afterMs)
    while (this.#clock.frozen) await new Promise<void>((resolve) => this.#undelivered.push(resolve))
    if (this.isCut) await never()
  }
}

function refused(requests: readonly unknown[]) {
  return (outcome: 'busy' | 'failed') =>
    requests.map(() =>
      outcome === 'busy' ? { outcome } : { outcome, error: new Error('Refused, as planned.') },
    )
}

function never(): Promise<never> {
  return new Promise(() => {})
}
