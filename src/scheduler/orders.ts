import type { OrdersChange } from '../driver/task-driver.ts'
import type { Schedule } from './schedule.ts'

/** A manual run that was asked for, or the slots of a range one after the other. */
export interface Order {
  readonly id: string
  /** Who asked and why. */
  readonly by: string
  /** The instant of the run; of a range, where it goes on. */
  readonly at: number
  /** The end of a range, inclusive. */
  readonly upTo?: number
}

/** What to claim next of the orders of a task. */
export interface OrderedSlot {
  readonly slot: number
  /** `'miss'`: nothing is left of the first order. */
  readonly decide: 'run' | 'miss'
  readonly by: string
  readonly orders: OrdersChange
}

/** What a store keeps of a task's orders, in UTF-8 bytes. */
const longest = 4_000
const most = 16

/** The orders of a record; none if it has something else there. */
export function parseOrders(text: string): readonly Order[] {
  try {
    const orders: unknown = text === '' ? [] : JSON.parse(text)
    return Array.isArray(orders) ? orders.filter(isOrder) : []
  } catch {
    return []
  }
}

/** @returns null if so many don't fit */
export function formatOrders(orders: readonly Order[]): string | null {
  const text = orders.length === 0 ? '' : JSON.stringify(orders)
  return orders.length > most || Buffer.byteLength(text) > longest ? null : text
}

/** @param before the orders as the record has them, not empty */
export function nextOrderedSlot(schedule: Schedule, before: string, mark: number): OrderedSlot {
  const [first, ...rest] = parseOrders(before)
  const left = formatOrders(rest) ?? ''
  if (first === undefined) return { slot: mark, decide: 'miss', by: '', orders: { before, after: '' } }
  const { at, upTo, by } = first
  if (upTo === undefined) return { slot: at, decide: 'run', by, orders: { before, after: left } }
  const slot = schedule.next(at - 1)
  if (slot > upTo) return { slot: mark, decide: 'miss', by, orders: { before, after: left } }
  const following = schedule.next(slot)
  const after = following > upTo ? left : (formatOrders([{ ...first, at: following }, ...rest]) ?? left)
  return { slot, decide: 'run', by, orders: { before, after } }
}

function isOrder(order: unknown): order is Order {
  if (typeof order !== 'object' || order === null) return false
  const { id, by, at, upTo } = order as Record<string, unknown>
  const isInstant = (value: unknown): boolean => Number.isSafeInteger(value)
  return (
    typeof id === 'string' &&
    typeof by === 'string' &&
    isInstant(at) &&
    (upTo === undefined || isInstant(upTo))
  )
}
