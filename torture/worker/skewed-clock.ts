import { type Clock, systemClock } from 'leasehold'
import type { ClockError } from './messages.ts'

const HostDate = Date

/** Milliseconds since the epoch on the host's own clock, whatever {@link SkewedClock.takeOverDate} did. */
export function hostWall(): number {
  return HostDate.now()
}

/** A clock that runs wrong and whose wall clock can be stepped. Its timers keep the host's time. */
export class SkewedClock implements Clock {
  readonly #monotonicRate: number
  /** Where the wall clock was when its rate changed last: by the host's, and by itself. */
  #host = hostWall()
  #wall: number
  #wallRate: number

  constructor({ monotonicRate, wallRate, wallOffsetMs }: ClockError) {
    this.#monotonicRate = monotonicRate
    this.#wallRate = wallRate
    this.#wall = this.#host + wallOffsetMs
  }

  monotonic(): number {
    return systemClock.monotonic() * this.#monotonicRate
  }

  wall(): number {
    return this.#wall + (hostWall() - this.#host) * this.#wallRate
  }

  setTimer: Clock['setTimer'] = (delayMs, callback, options) =>
    systemClock.setTimer(delayMs / this.#monotonicRate, callback, options)

  step(ms: number): void {
    this.#wall += ms
  }

  /** From now on the wall clock runs that fast. */
  drift(wallRate: number): void {
    this.#wall = this.wall()
    this.#host = hostWall()
    this.#wallRate = wallRate
  }

  /** Milliseconds of the host's clock that so many of this one take. */
  toHostMs(ms: number): number {
    return ms / this.#monotonicRate
  }

  /** Whoever asks `Date` in this process gets this clock's time: drivers and client libraries, too. */
  takeOverDate(): void {
    const wall = (): number => Math.floor(this.wall())
    globalThis.Date = class extends HostDate {
      constructor(...args: [] | [number | string | Date]) {
        super(...((args.length === 0 ? [wall()] : args) as [number]))
      }

      static override now(): number {
        return wall()
      }
    } as DateConstructor
  }
}
