import type { Clock, Timer } from '../core/clock.ts'
import { type StopOrder, stopGraceMs } from './run.ts'

/** What has runs that must end before the node does. */
export interface Draining {
  /** Claims nothing more. Resolves when the last claim is answered and all runs have ended. */
  drain(): Promise<unknown>
  /** What runs is asked to stop, and a grant that comes in now is not begun. */
  cutShort(order: StopOrder): void
  /** Nothing is renewed or recorded any more. */
  giveUp(): void
}

/** Lets all runs end; those that have not after `drainMs` are aborted, and a grace later given up. Never rejects. */
export async function drainWithin(clock: Clock, tasks: readonly Draining[], drainMs: number): Promise<void> {
  const drained = Promise.all(tasks.map((task) => task.drain()))
  if (await isDoneWithin(clock, drained, drainMs)) return
  const order = {
    kind: 'stopped',
    reason: 'the scheduler stops, and its drain limit is reached',
    mayRetry: true,
  } as const
  for (const task of tasks) task.cutShort(order)
  await isDoneWithin(clock, drained, stopGraceMs)
  for (const task of tasks) task.giveUp()
}

async function isDoneWithin(clock: Clock, promise: Promise<unknown>, milliseconds: number): Promise<boolean> {
  let timer: Timer | undefined
  const limit = new Promise<false>((resolve) => {
    timer = clock.setTimer(milliseconds, () => resolve(false), { keepAlive: true })
  })
  const isDone = await Promise.race([promise.then(() => true), limit])
  timer?.cancel()
  return isDone
}
