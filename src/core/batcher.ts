import type { CallOptions } from '../driver/driver.ts'
import { type Clock, type Moment, momentOf, type Timer } from './clock.ts'
import { DriverFault } from './errors.ts'

/** One call of a driver verb. */
export type SendBatch<Request, Answer> = (
  requests: readonly Request[],
  call: CallOptions,
) => Promise<readonly Answer[]>

export interface BatcherOptions<Request, Answer> {
  readonly clock: Clock
  readonly random: () => number
  readonly send: SendBatch<Request, Answer>
  /** What may be only once in a batch and in the air. */
  readonly keyOf: (request: Request) => string
  readonly maxBatch: number
  /** How many batches may be in the air at once; what comes meanwhile is joined into the next one. */
  readonly maxInFlight: number
}

/** How one item is to be sent. Items that differ in this never share a batch. */
export interface ItemOptions extends CallOptions {
  /** How long the item's batch may be in the air before its outcome counts as unknown. */
  readonly timeoutMs: number
}

/** What became of one item. Never a rejection: the caller has to look at both cases. */
export type Sent<Answer> =
  | {
      readonly kind: 'answered'
      readonly answer: Answer
      /** Just before the request that was answered was sent: what a deadline is counted from. */
      readonly sentAt: Moment
    }
  | {
      readonly kind: 'failed'
      readonly fault: DriverFault
      /** Resolves when the call has really ended; until then it may still be applied. */
      readonly settled: Promise<void>
    }

interface Item<Request, Answer> {
  readonly request: Request
  readonly options: ItemOptions
  readonly resolve: (sent: Sent<Answer>) => void
}

/**
 * Joins the calls of one tick, and what queues up behind batches in the air, into few batches. A lone caller waits for
 * nothing: its batch leaves at the end of the current tick. A key is at most once in the air; the next call for it
 * goes into a later batch.
 */
export class Batcher<Request, Answer> {
  readonly #options: BatcherOptions<Request, Answer>
  readonly #keysInAir = new Set<string>()
  readonly #flights = new Set<Promise<void>>()
  #queue: Item<Request, Answer>[] = []
  #inAir = 0
  #departureScheduled = false

  constructor(options: BatcherOptions<Request, Answer>) {
    this.#options = options
  }

  submit(request: Request, options: ItemOptions): Promise<Sent<Answer>> {
    return new Promise((resolve) => {
      this.#queue.push({ request, options, resolve })
      this.#scheduleDeparture()
    })
  }

  /** Resolves when nothing is queued or in the air any more; calls that hang count as ended at their timeout. */
  async idle(): Promise<void> {
    while (this.#queue.length > 0 || this.#flights.size > 0) {
      await (this.#flights.size > 0
        ? Promise.all(this.#flights)
        : new Promise<void>((done) => process.nextTick(done)))
    }
  }

  /** After the promise jobs of this tick, so that a hundred callers that continue at once leave together. */
  #scheduleDeparture(): void {
    if (this.#departureScheduled || this.#inAir >= this.#options.maxInFlight) return
    this.#departureScheduled = true
    process.nextTick(() => {
      this.#departureScheduled = false
      while (this.#inAir < this.#options.maxInFlight && this.#depart());
    })
  }

  /** Sends one batch of what may travel together; false if nothing may leave now. */
  #depart(): boolean {
    const batch = this.#takeBatch()
    if (batch.length === 0) return false
    this.#inAir++
    const flight: Promise<void> = this.#fly(batch).finally(() => {
      this.#flights.delete(flight)
      this.#inAir--
      for (const item of batch) this.#keysInAir.delete(this.#options.keyOf(item.request))
      if (this.#queue.length > 0) this.#scheduleDeparture()
    })
    this.#flights.add(flight)
    return true
  }

  #takeBatch(): Item<Request, Answer>[] {
    const batch: Item<Request, Answer>[] = []
    const left: Item<Request, Answer>[] = []
    for (const item of this.#queue) {
      const key = this.#options.keyOf(item.request)
      const fits =
        batch.length < this.#options.maxBatch && (batch[0] === undefined || mayShare(batch[0], item))
      if (fits && !this.#keysInAir.has(key)) {
        this.#keysInAir.add(key)
        batch.push(item)
      } else {
        left.push(item)
      }
    }
    this.#queue = left
    return batch
  }

  async #fly(batch: readonly Item<Request, Answer>[]): Promise<void> {
    const { clock } = this.#options
    const timeoutMs = batch[0]?.options.timeoutMs ?? 0
    let timer: Timer | undefined
    const timedOut = new Promise<'timed out'>((resolve) => {
      timer = clock.setTimer(timeoutMs, () => resolve('timed out'), { keepAlive: true })
    })
    const ended = this.#callUntil(batch, clock.monotonic() + timeoutMs)
    const first = await Promise.race([ended, timedOut])
    timer?.cancel()
    if (first !== 'timed out') return
    const fault = new DriverFault('unknown', `The store did not answer within ${timeoutMs} ms.`)
    for (const item of batch) item.resolve({ kind: 'failed', fault, settled: ended })
  }

  /**
   * Calls the driver, again where it says that nothing was applied and that trying again helps, in halves where one
   * item spoils the batch. Items that were resolved as timed out meanwhile ignore what is resolved here.
   */
  async #callUntil(batch: readonly Item<Request, Answer>[], giveUpAt: number): Promise<void> {
    const { clock, random, send } = this.#options
    const options = batch[0]?.options as ItemOptions
    const call: CallOptions = { attempt: options.attempt, lockedRows: options.lockedRows }
    const requests = batch.map((item) => item.request)
    for (let tries = 1; ; tries++) {
      const sentAt = momentOf(clock)
      try {
        const answers = await send(requests, call)
        if (answers.length !== batch.length) {
          throw new DriverFault('unknown', `The driver answered ${answers.length} of ${batch.length} items.`)
        }
        for (const [index, item] of batch.entries()) {
          item.resolve({ kind: 'answered', answer: answers[index] as Answer, sentAt })
        }
        return
      } catch (error) {
        const fault = toFault(error)
        if (fault.kind === 'bad-item' && batch.length > 1) {
          const half = Math.ceil(batch.length / 2)
          await Promise.all([
            this.#callUntil(batch.slice(0, half), giveUpAt),
            this.#callUntil(batch.slice(half), giveUpAt),
          ])
          return
        }
        const pauseMs = retryPause(tries, random)
        if (fault.kind !== 'retry' || clock.monotonic() + pauseMs >= giveUpAt) {
          for (const item of batch) item.resolve({ kind: 'failed', fault, settled: Promise.resolve() })
          return
        }
        if (pauseMs > 0)
          await new Promise<void>((resolve) => clock.setTimer(pauseMs, resolve, { keepAlive: true }))
      }
    }
  }
}

function mayShare<Request, Answer>(first: Item<Request, Answer>, other: Item<Request, Answer>): boolean {
  return (
    first.options.timeoutMs === other.options.timeoutMs &&
    first.options.attempt === other.options.attempt &&
    first.options.lockedRows === other.options.lockedRows
  )
}

/** At once the first time, then 1, 2, 4 … 25 ms, with jitter so that colliding nodes part. */
function retryPause(tries: number, random: () => number): number {
  return tries === 1 ? 0 : Math.min(25, 2 ** (tries - 2)) * (0.5 + random())
}

/** A rejection that is no {@link DriverFault} may have been applied. */
function toFault(error: unknown): DriverFault {
  if (error instanceof DriverFault) return error
  return new DriverFault('unknown', error instanceof Error ? error.message : String(error), { cause: error })
}
