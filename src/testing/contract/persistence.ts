import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { DriverFault } from '../../core/errors.ts'
import type { BusyAnswer, CallOptions, FailedAnswer } from '../../driver/index.ts'

/** An answer that is one: not "ask again", and not an item's own error. */
export type Settled<Answer> = Exclude<Answer, BusyAnswer | FailedAnswer>

interface AnyAnswer {
  readonly outcome: string
}

const longestMs = 10_000

/**
 * Asks as the core does: once without waiting for locked records, then again for the items that were busy, and for all
 * of them where the driver says that nothing was applied and trying again helps.
 */
export async function askUntilSettled<Request, Answer extends AnyAnswer>(
  send: (requests: readonly Request[], call: CallOptions) => Promise<readonly Answer[]>,
  requests: readonly Request[],
): Promise<Exclude<Answer, BusyAnswer>[]> {
  const settled = new Map<number, Exclude<Answer, BusyAnswer>>()
  const giveUpAt = performance.now() + longestMs
  let open = requests.map((_, index) => index)
  for (let round = 0; open.length > 0; round++) {
    assert.ok(performance.now() < giveUpAt, `Busy, and nothing else, for ${longestMs} ms`)
    if (round > 1) await pause(Math.min(round, 20))
    const asked = open.map((index) => requests[index] as Request)
    const answers = await unlessItHelpsToRetry(send(asked, round === 0 ? skipping : patient))
    if (answers === undefined) continue
    assert.equal(answers.length, asked.length, 'a batch is answered item by item')
    open = open.filter((index, position) => {
      const answer = answers[position] as Answer
      if (answer.outcome === 'busy') return true
      settled.set(index, answer as Exclude<Answer, BusyAnswer>)
      return false
    })
  }
  return requests.map((_, index) => settled.get(index) as Exclude<Answer, BusyAnswer>)
}

/** The one answer to a batch of one; an item's own error is thrown. */
export async function askOne<Request, Answer extends AnyAnswer>(
  send: (requests: readonly Request[], call: CallOptions) => Promise<readonly Answer[]>,
  request: Request,
): Promise<Settled<Answer>> {
  const [answer] = await askUntilSettled(send, [request])
  return unlessFailed(answer as Answer)
}

/** The answer to a call that takes a single request. */
export function askSingle<Request, Answer extends AnyAnswer>(
  send: (request: Request, call: CallOptions) => Promise<Answer>,
  request: Request,
): Promise<Settled<Answer>> {
  return askOne(
    async (requests: readonly Request[], call) => [await send(requests[0] as Request, call)],
    request,
  )
}

/** The answer to a call that has no items, tried again where that helps. */
export async function askPlain<Answer>(send: (call: CallOptions) => Promise<Answer>): Promise<Answer> {
  const giveUpAt = performance.now() + longestMs
  for (;;) {
    const answer = await unlessItHelpsToRetry(send(patient).then((value) => ({ value })))
    if (answer !== undefined) return answer.value
    assert.ok(performance.now() < giveUpAt, `Nothing but faults to retry for ${longestMs} ms`)
    await pause(2)
  }
}

export function unlessFailed<Answer extends AnyAnswer>(answer: Answer): Settled<Answer> {
  if (answer.outcome === 'failed') throw (answer as AnyAnswer as FailedAnswer).error
  return answer as Settled<Answer>
}

/** As the core asks first. */
export const skipping: CallOptions = { attempt: 1, lockedRows: 'skip' }
/** As the core asks after `busy`. */
export const patient: CallOptions = { attempt: 1, lockedRows: 'wait' }

async function unlessItHelpsToRetry<Answer>(asked: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof DriverFault && error.kind === 'retry') return undefined
    throw error
  }
}
