import {
  InvalidOptionError,
  quoted,
  requireOption,
  SchedulerStateError,
  StoreUnavailableError,
  UnknownTaskError,
} from '../core/errors.ts'
import { readOptions } from '../core/read-options.ts'
import type { ServiceContext } from '../core/service-context.ts'
import type { ControlRequest, TaskRecord } from '../driver/task-driver.ts'
import { readDefinition } from './definition-text.ts'
import { formatOrders, type Order, parseOrders } from './orders.ts'
import { type Schedule, slotsBetween } from './schedule.ts'
import { type ControlOptions, type ControlOutcome, resolveControl, sendControl } from './task-control.ts'
import { readTask } from './task-records.ts'

export interface BackfillOptions extends ControlOptions {
  /** The first slot to run again, or an instant before it. */
  readonly from: Date
  /** The last one, inclusive. Slots that were not decided yet are left out: they run by themselves. Default: all. */
  readonly to?: Date | undefined
}

/** The most slots of one backfill. */
const mostSlots = 10_000
/** How often to try while others order, too. */
const tries = 20

/** Orders one run, now. @throws as {@link order} */
export function orderRun(
  context: ServiceContext,
  name: string,
  options: ControlOptions,
): Promise<ControlOutcome> {
  const request = resolveControl(context, 'order', name, options)
  return order(context, name, request, ({ now }, schedule) => {
    const at = Math.floor(now)
    // Not the name of a slot that is still to be decided.
    return { at: schedule.latest(at) === at ? at - 1 : at }
  })
}

/** Orders the decided slots of a range, one run after the other. @throws as {@link order} */
export function orderRange(
  context: ServiceContext,
  name: string,
  options: BackfillOptions,
): Promise<ControlOutcome> {
  const { from, to, ...rest } = readOptions('backfill', options, ['from', 'to', 'by', 'requestId'])
  const at = instantOf('from', from)
  const end = to === undefined ? Infinity : instantOf('to', to)
  const request = resolveControl(context, 'order', name, rest)
  return order(context, name, request, ({ mark }, schedule) => {
    const upTo = Math.min(end, mark)
    const count = slotsBetween(schedule, at - 1, upTo, mostSlots + 1).length
    if (count > 0 && count <= mostSlots) return { at, upTo }
    throw new InvalidOptionError(
      'from',
      count === 0
        ? `${quoted(name)} has no decided slot from ${from.toISOString()} to ${new Date(upTo).toISOString()}.`
        : `A backfill runs at most ${mostSlots} slots; ask for a shorter range.`,
    )
  })
}

/**
 * Adds an order to those of the task, as often as somebody else is quicker.
 *
 * @throws InvalidOptionError, UnknownTaskError, SchedulerStateError, StoreUnavailableError, StoreUnusableError
 */
async function order(
  context: ServiceContext,
  name: string,
  request: ControlRequest,
  what: (record: TaskRecord, schedule: Schedule) => Pick<Order, 'at' | 'upTo'>,
): Promise<ControlOutcome> {
  const { requestId: id, by } = request
  for (let nth = 0; nth < tries; nth++) {
    const record = await readTask(context, name)
    if (record === null) throw new UnknownTaskError(name)
    const before = record.orders
    const orders = parseOrders(before)
    if (orders.some((one) => one.id === id)) return 'repeated'
    const after = formatOrders([...orders, { id, by, ...what(record, scheduleOf(record, name)) }])
    if (after === null) {
      throw new SchedulerStateError(
        `Too many manual runs of ${quoted(name)} are waiting. Ask again when some have begun.`,
      )
    }
    const answer = await sendControl(context, `trigger ${quoted(name)}`, {
      ...request,
      orders: { before, after },
    })
    if (answer.outcome === 'unregistered') throw new UnknownTaskError(name)
    if (answer.outcome === 'applied' || answer.outcome === 'repeated') return answer.outcome
  }
  throw new StoreUnavailableError(
    `Could not trigger ${quoted(name)}: others ordered at the same time, again and again. Ask again.`,
    'no',
  )
}

function scheduleOf({ definition }: TaskRecord, name: string): Schedule {
  const stored = readDefinition(definition)
  const schedule = stored.isFiredElsewhere ? null : stored.schedule()
  if (schedule !== null) return schedule
  throw new SchedulerStateError(
    `${quoted(name)} is fired by something else than a TaskScheduler: only that can run it. Fire it there.`,
  )
}

function instantOf(option: string, date: Date): number {
  const instant = date instanceof Date ? date.getTime() : Number.NaN
  requireOption(Number.isFinite(instant), option, 'a valid Date')
  return instant
}
