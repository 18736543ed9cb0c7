import type { CallOptions } from '../../driver/driver.ts'

/* What the statements of leases and tasks share. */

/** What a statement does about rows that another one has locked. */
export type LockedRows = CallOptions['lockedRows']

/** What ends a locking clause. */
export function unlessLocked(lockedRows: LockedRows): string {
  return lockedRows === 'skip' ? 'skip locked' : ''
}

/** The store's clock in microseconds. */
export const clockMicros = '(extract(epoch from clock_timestamp()) * 1000000)::bigint'

/** The greatest fence that a JavaScript number holds exactly, with room for the next one. */
export const greatestFence = '9007199254740990'

/** A moment between year 1 and year 10000: with an infinite one, which somebody else wrote, one row would fail a batch. */
function finite(moment: string): string {
  return `least(greatest(${moment}, '0001-01-01 UTC'), '9999-12-31 UTC')`
}

/** An SQL expression for a moment as milliseconds since the epoch; null for null. */
export function millis(moment: string): string {
  return `case when ${moment} is not null then floor(extract(epoch from ${finite(moment)}) * 1000)::bigint end`
}

/** An SQL expression for the milliseconds until a moment, as a rule from now on; null for null. */
export function millisUntil(moment: string, from = 'clock_timestamp()'): string {
  return `case when ${moment} is not null then extract(epoch from ${finite(moment)} - ${from}) * 1000 end`
}

/** What a transaction that must survive a crash sets, whatever the role's default. */
export const durably = `case current_setting('synchronous_commit') when 'off' then 'on' else current_setting('synchronous_commit') end`

/** The CTE `t`: one moment for all that a statement decides, `now`, and in milliseconds since the epoch, `ms`. */
export const moment: string = `t as materialized (
  select c.now, ${millis('c.now')} as ms from (select clock_timestamp() as now) c)`
