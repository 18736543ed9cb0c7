import type { CallOptions } from '../driver/driver.ts'
import { type Clock, type Moment, momentOf, sleep, type Timer } from './clock.ts'
import { DriverFault, messageOf } from './errors.ts'

// Taken early: test frameworks put another one onto `process`, which never comes. Not imported, since a module made of
// `process` opens its standard streams for their names, which costs each importer 4 ms and 1.7 MiB.
const { nextTick } = process

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
  /** How many batches of one lane may be in the air at once; what comes meanwhile is joined into the next one. */
  readonly maxInFlight: number
}

/** How one item is to be sent. */
export interface ItemOptions extends CallOptions {
  /** How long to wait for the answer, in the queue and in the air together, before the outcome counts as unknown. */
  readonly timeoutMs: number
  /** Called when the item leaves with a batch, just before that is sent. Never throws. */
  readonly onSend?: () => void
}

/** What became of one item. Never a rejection: the caller has to look at both cases. */
export type Sent<Answer> =
  | Answered<Answer>
  | {
      readonly kind: 'failed'
      readonly fault: DriverFault
      /**
       * Resolves when the call has really ended; until then it may still be applied. With its answer, if it came after
       * the item had been given up.
       */
      readonly settled: Promise<Answered<Answer> | null>
    }

export interface Answered<Answer> {
  readonly kind: 'answered'
  readonly answer: Answer
  /** Just before the request that was answered was sent: what a deadline is counted from. */
  readonly sentAt: Moment
}

interface Item<Request, Answer> {
  readonly request: Request
  readonly key: string
  readonly options: ItemOptions
  readonly lane: string
  readonly expiresAt: number
  readonly resolve: (sent: Sent<Answer>) => void
  /** The batch that it travels in; undefined while it is queued. */
  flight: Flight | undefined
  done: boolean
  /** Takes an answer that comes after the item was given up. */
  answerLate: ((answered: Answered<Answer>) => void) | undefined
}

/** A batch in the air. It gives its place up when each of its items was answered or given up. */
interface Flight {
  readonly lane: string
  openItems: number
  timer: Timer | undefined
}

/**
 * Joins the calls of one tick, and what queues up behind batches in the air, into few batches. A lone caller waits for
 * nothing: its batch leaves at the end of the current tick. A key is at most once in the air; the next call for it
 * goes into a later batch.
 *
 * First tries and repeated ones, and those that wait for locked rows, travel in lanes of their own: a repeated try must
 * not queue up behind the calls whose hanging made it necessary. Every item is given up at its own timeout, wherever
 * it is by then.
 */
export class Batcher<Request, Answer> {
  readonly #options: BatcherOptions<Request, Answer>
  readonly #keysInAir = new Set<string>()
  readonly #inAir = new Map<string, number>()
  #queue: Item<Request, Answer>[] = []
  #queueTimer: Timer | undefined
  #departureScheduled = false
  #idlers: (() => void)[] = []

  constructor(options: BatcherOptions<Request, Answer>) {
    this.#options = options
  }

  submit(request: Request, options: ItemOptions): Promise<Sent<Answer>> {
    const { clock, keyOf } = this.#options
    return new Promise((resolve) => {
      this.#queue.push({
        request,
        key: keyOf(request),
        options,
        lane: `${options.attempt > 1 ? 'again' : 'first'} ${options.lockedRows}`,
        expiresAt: clock.monotonic() + options.timeoutMs,
        resolve,
        flight: undefined,
        done: false,
        answerLate: undefined,
      })
      this.#scheduleDeparture()
    })
  }

  /** Resolves when nothing is queued or in the air any more; calls that hang count as ended at their timeout. */
  async idle(): Promise<void> {
    if (this.#isIdle) return
    await new Promise<void>((resolve) => this.#idlers.push(resolve))
  }

  get #isIdle(): boolean {
    return this.#queue.length === 0 && this.#inAir.size === 0
  }

  /** After the promise jobs of this tick, so that a hundred callers that continue at once leave together. */
  #scheduleDeparture(): void {
    if (this.#departureScheduled) return
    this.#departureScheduled = true
    nextTick(() => {
      this.#departureScheduled = false
      while (this.#depart());
      this.#watchQueue()
    })
  }

  /** Sends one batch of what may travel together; false if nothing may leave now. */
  #depart(): boolean {
    const batch = this.#takeBatch()
    const lane = batch[0]?.lane
    if (lane === undefined) return false
    const flight: Flight = { lane, openItems: batch.length, timer: undefined }
    this.#inAir.set(lane, (this.#inAir.get(lane) ?? 0) + 1)
    for (const item of batch) {
      item.flight = flight
      item.options.onSend?.()
    }
    this.#watchFlight(flight, batch, this.#call(batch))
    return true
  }

  #takeBatch(): Item<Request, Answer>[] {
    const { maxBatch, maxInFlight } = this.#options
    const batch: Item<Request, Answer>[] = []
    const left: Item<Request, Answer>[] = []
    for (const item of this.#queue) {
      const fits = batch[0] === undefined || (batch[0].lane === item.lane && batch.length < maxBatch)
      const hasPlace = (this.#inAir.get(item.lane) ?? 0) < maxInFlight
      if (fits && hasPlace && !this.#keysInAir.has(item.key)) {
        this.#keysInAir.add(item.key)
        batch.push(item)
      } else {
        left.push(item)
      }
    }
    this.#queue = left
    return batch
  }

  /** Resolves an item, once. */
  #finish(item: Item<Request, Answer>, sent: Sent<Answer>): void {
    if (item.done) return
    item.done = true
    item.resolve(sent)
    const { flight } = item
    if (flight !== undefined) {
      this.#keysInAir.delete(item.key)
      if (--flight.openItems === 0) this.#land(flight)
      if (this.#queue.length > 0) this.#scheduleDeparture()
    }
    if (this.#isIdle) for (const idler of this.#idlers.splice(0)) idler()
  }

  #fail(
    item: Item<Request, Answer>,
    fault: DriverFault,
    settled: Promise<Answered<Answer> | null> = Promise.resolve(null),
  ): void {
    this.#finish(item, { kind: 'failed', fault, settled })
  }

  #land({ lane, timer }: Flight): void {
    timer?.cancel()
    const left = (this.#inAir.get(lane) ?? 1) - 1
    if (left > 0) this.#inAir.set(lane, left)
    else this.#inAir.delete(lane)
  }

  /** Gives up what hangs for too long, item by item. */
  #watchFlight(flight: Flight, batch: readonly Item<Request, Answer>[], ended: Promise<void>): void {
    const open = batch.filter(({ done }) => !done)
    if (open.length === 0) return
    flight.timer = this.#atFirstExpiry(open, (late) => {
      for (const item of late) {
        const settled = new Promise<Answered<Answer> | null>((resolve) => {
          item.answerLate = resolve
          void ended.then(() => resolve(null))
        })
        const { timeoutMs } = item.options
        this.#fail(
          item,
          new DriverFault('unknown', `The store did not answer within ${timeoutMs} ms.`),
          settled,
        )
      }
      this.#watchFlight(flight, batch, ended)
    })
  }

  /** Gives up what cannot leave because other calls hang. */
  #watchQueue(): void {
    this.#queueTimer?.cancel()
    this.#queueTimer = undefined
    if (this.#queue.length === 0) return
    this.#queueTimer = this.#atFirstExpiry(this.#queue, (late) => {
      const lateItems = new Set(late)
      this.#queue = this.#queue.filter((item) => !lateItems.has(item))
      for (const item of late) {
        const { timeoutMs } = item.options
        this.#fail(item, new DriverFault('not-sent', `Other calls to the store hung for ${timeoutMs} ms.`))
      }
      this.#watchQueue()
    })
  }

  #atFirstExpiry(
    items: readonly Item<Request, Answer>[],
    giveUp: (late: readonly Item<Request, Answer>[]) => void,
  ): Timer {
    const { clock } = this.#options
    const first = items.reduce((least, { expiresAt }) => Math.min(least, expiresAt), Infinity)
    const delayMs = Math.max(0, first - clock.monotonic())
    const look = (): void => {
      // A timer may fire a fraction early; what was due at it is due.
      const now = Math.max(first, clock.monotonic())
      giveUp(items.filter(({ done, expiresAt }) => !done && expiresAt <= now))
    }
    return clock.setTimer(delayMs, look, { keepAlive: true })
  }

  /**
   * Calls the driver, again where it says that nothing was applied and that trying again helps, in halves where one
   * item spoils the batch; never with items that were given up meanwhile.
   */
  async #call(batch: readonly Item<Request, Answer>[]): Promise<void> {
    const { clock, random, send } = this.#options
    for (let tries = 1; ; tries++) {
      const open = batch.filter(({ done }) => !done)
      const first = open[0]
      if (first === undefined) return
      const { attempt, lockedRows } = first.options
      const sentAt = momentOf(clock)
      try {
        const requests = open.map(({ request }) => request)
        const answers = await send(requests, { attempt, lockedRows })
        const answered = answers.filter((answer) => answer !== undefined && answer !== null)
        if (answered.length !== open.length || answers.length !== open.length) {
          throw new DriverFault('unknown', `The driver answered ${answered.length} of ${open.length} items.`)
        }
        for (const [index, item] of open.entries()) {
          const sent = { kind: 'answered', answer: answered[index] as Answer, sentAt } as const
          item.answerLate?.(sent)
          this.#finish(item, sent)
        }
        return
      } catch (error) {
        const fault = toFault(error)
        if (fault.kind === 'bad-item' && open.length > 1) {
          const half = Math.ceil(open.length / 2)
          await Promise.all([this.#call(open.slice(0, half)), this.#call(open.slice(half))])
          return
        }
        const pauseMs = retryPause(tries, random)
        const lastExpiry = open.reduce((last, { expiresAt }) => Math.max(last, expiresAt), 0)
        if (fault.kind !== 'retry' || clock.monotonic() + pauseMs >= lastExpiry) {
          for (const item of open) this.#fail(item, fault)
          return
        }
        if (pauseMs > 0) await sleep(clock, pauseMs)
      }
    }
  }
}

/** At once the first time, then 1, 2, 4 … 25 ms, with jitter so that colliding nodes part. */
function retryPause(tries: number, random: () => number): number {
  return tries === 1 ? 0 : Math.min(25, 2 ** (tries - 2)) * (0.5 + random())
}

/** A rejection that is no {@link DriverFault} may have been applied. */
function toFault(error: unknown): DriverFault {
  if (error instanceof DriverFault) return error
  return new DriverFault('unknown', messageOf(error), { cause: error })
}
