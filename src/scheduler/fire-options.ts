import { types } from 'node:util'
import { type Duration, parseDuration } from '../core/duration.ts'
import { InvalidOptionError, requireOption } from '../core/errors.ts'
import { type LeaseOptions, resolveLeaseOptions } from '../core/options.ts'
import { readOptions } from '../core/read-options.ts'
import { toStoredKey } from '../core/stored-key.ts'
import { shownName } from './definition-text.ts'
import { externalSchedule } from './external-schedule.ts'
import type { Schedule } from './schedule.ts'
import {
  givenLeaseOptions,
  leaseOptionNames,
  type ScheduleTiming,
  type TaskDefaults,
  type TaskDefinition,
} from './task-options.ts'

/** What names the slot that is fired; without any of these the name is merely locked while it runs. */
export interface SlotTiming {
  /** The nominal instant that is being fired, a `Date` or milliseconds since the epoch. */
  readonly slot?: Date | number | undefined
  /**
   * The cron by which it is fired, as for a scheduled task. Without `slot`, the slot is the newest one on this host's
   * clock: that of the timer which fires it.
   */
  readonly cron?: string | undefined
  /** IANA name of the zone of `cron`. Default: that of the store, `'UTC'` if it has none. */
  readonly timeZone?: string | undefined
  /** The interval at which it is fired, 100 ms to 365 days; its slots are the multiples of it since 1970. */
  readonly every?: Duration | undefined
}

export interface FireOptions extends SlotTiming, Pick<LeaseOptions, 'ttl' | 'heartbeat' | 'maxLifetime'> {
  /**
   * How long to go on asking a store that cannot be reached, before the call rejects. Longer bridges longer outages,
   * and starts later. Default `'60s'`, at most 1 h.
   */
  readonly startDeadline?: Duration | undefined
}

/** Which slot of what is fired. */
export interface ResolvedFire {
  /** Null: there are no slots, only the lock. */
  readonly definition: TaskDefinition | null
  /** Null: the newest one on the host's clock. */
  readonly slot: number | null
  readonly lease: LeaseOptions
  readonly startDeadlineMs: number
}

const fireOptionNames = ['slot', 'cron', 'timeZone', 'every', 'startDeadline', ...leaseOptionNames] as const
const day = 86_400_000
/** Timers of Node.js may ring a fraction of a millisecond before their time. */
const earlyMs = 50

/** @throws InvalidOptionError */
export function resolveFire(
  name: string,
  given: FireOptions,
  defaults: TaskDefaults,
  scheduleOf: (timing: ScheduleTiming) => Schedule,
): ResolvedFire {
  const options = readOptions('run', given, fireOptionNames)
  const storedName = toStoredKey('name', name)
  const { cron, every, timeZone } = options
  const startDeadlineMs = parseDuration('startDeadline', options.startDeadline ?? 60_000, {
    min: 0,
    max: 3_600_000,
  })
  const lease = { ...givenLeaseOptions(defaults.lease), ...givenLeaseOptions(options) }
  const resolved = resolveLeaseOptions({ ...defaults.service.lease, ...lease }, defaults.service.driver)
  const slot = options.slot === undefined ? null : resolveSlot(options.slot)
  const isTimed = cron !== undefined || every !== undefined
  if (!isTimed && timeZone !== undefined) {
    throw new InvalidOptionError('timeZone', 'timeZone goes with cron.')
  }
  if (!isTimed && slot === null) return { definition: null, slot, lease, startDeadlineMs }
  const schedule = isTimed ? scheduleOf({ cron, every, timeZone }) : externalSchedule
  const text = JSON.stringify({
    ...shownName(name, storedName),
    ...schedule.timing,
    fired: true,
    ttlMs: resolved.ttlMs,
  })
  const definition: TaskDefinition = {
    name,
    storedName,
    schedule,
    onCrash: 'skip',
    maxAttempts: 1,
    overlap: 'skip',
    laneCount: 0,
    isLane: false,
    catchUp: 'none',
    catchUpWindowMs: 0,
    catchUpMax: 1,
    startDeadlineMs,
    timeoutMs: null,
    jitterMs: 0,
    lock: null,
    lease: resolved,
    text,
  }
  return { definition, slot, lease, startDeadlineMs }
}

/** Fired a day before its time on the very clock that fires it: a mistake, not a fast clock. @throws InvalidOptionError */
export function assertDue(slot: number, wall: number): void {
  if (slot <= wall + day) return
  throw new InvalidOptionError(
    'slot',
    `The slot ${new Date(slot).toISOString()} is more than a day ahead of this host's clock: name one that is being fired.`,
  )
}

/** The slot that a timer on this host's clock has just rung for. @throws InvalidOptionError */
export function firedSlot({ schedule, name }: TaskDefinition, wall: number): number {
  const before = schedule.latest(Math.floor(wall))
  const next = schedule.next(Math.floor(wall))
  const slot = next - wall <= Math.min(earlyMs, (next - before) / 10) ? next : before
  if (Number.isFinite(slot)) return slot
  throw new InvalidOptionError('slot', `The schedule of ${JSON.stringify(name)} has no slot yet: name one.`)
}

function resolveSlot(slot: Date | number): number {
  const instant = types.isDate(slot) ? Date.prototype.getTime.call(slot) : slot
  const isInstant =
    typeof instant === 'number' && Number.isSafeInteger(instant) && instant > 0 && instant < 8.64e15
  requireOption(isInstant, 'slot', 'a valid Date, or an integer of milliseconds since the epoch')
  return instant
}
