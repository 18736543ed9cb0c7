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

/** An SQL expression for a moment as milliseconds since the epoch. */
export function millis(moment: string): string {
  return `floor(extract(epoch from ${moment}) * 1000)::bigint`
}

/** An SQL expression for the milliseconds until a moment. */
export function millisUntil(moment: string): string {
  return `extract(epoch from ${moment} - clock_timestamp()) * 1000`
}

/** What a transaction that must survive a crash sets, whatever the role's default. */
export const durably = `case current_setting('synchronous_commit') when 'off' then 'on' else current_setting('synchronous_commit') end`

/** The CTE `t`: one moment for all that a statement decides, `now`, and in milliseconds since the epoch, `ms`. */
export const moment: string = `t as materialized (
  select c.now, ${millis('c.now')} as ms from (select clock_timestamp() as now) c)`
