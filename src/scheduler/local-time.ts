const day = 86_400_000

/** The clocks show the times before it again. */
export interface PutBack {
  readonly at: number
  readonly before: number
  readonly after: number
}

/**
 * The wall clocks of one time zone. A *local time* is what they show, written as if it were UTC: 02:30 in Berlin is
 * the number that `Date.UTC(…, 2, 30)` gives.
 */
export class LocalTime {
  readonly #format: Intl.DateTimeFormat

  /** @throws RangeError if there is no such zone */
  constructor(timeZone: string) {
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'iso8601',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  }

  /** What the clocks show at an instant. */
  at(instant: number): number {
    const field: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {}
    for (const { type, value } of this.#format.formatToParts(instant)) field[type] = Number(value)
    const { year = 0, month = 1, day: date = 1, hour: hours = 0, minute = 0, second = 0 } = field
    const milliseconds = ((instant % 1_000) + 1_000) % 1_000
    return Date.UTC(year, month - 1, date, hours, minute, second, milliseconds)
  }

  /**
   * The instant at which the clocks were put forward over a local time, so that they never showed it; null if they
   * did show it.
   */
  skippedAt(local: number): number | null {
    // No zone is further than 14 hours from UTC, and none has changed by more than a day.
    const [before, after] = [this.#offset(local - day), this.#offset(local + day)]
    if (after <= before || this.at(local - before) === local || this.at(local - after) === local) return null
    return this.#changeBetween(local - day, local + day)
  }

  /**
   * The highest local time that the clocks have shown up to an instant: while they run through a repeated hour for the
   * second time, that is its end.
   */
  highestAt(instant: number): number {
    const shown = this.at(instant)
    if (this.#offset(instant - day) <= shown - instant) return shown
    return Math.max(shown, this.at(this.#changeBetween(instant - day, instant) - 1))
  }

  /**
   * A change within a day of an instant by which the clocks are put back further than so, if there is one; the offsets are
   * what the clocks are ahead of UTC.
   */
  putBackNear(instant: number, furtherThan: number): PutBack | null {
    const [before, after] = [this.#offset(instant - day), this.#offset(instant + day)]
    if (before - after <= furtherThan) return null
    return { at: this.#changeBetween(instant - day, instant + day), before, after }
  }

  /** The instant of the change, where the offsets at both ends differ. */
  #changeBetween(from: number, to: number): number {
    const before = this.#offset(from)
    let [early, late] = [from, to]
    while (late - early > 1) {
      const middle = Math.floor((early + late) / 2)
      if (this.#offset(middle) === before) early = middle
      else late = middle
    }
    return late
  }

  #offset(instant: number): number {
    return this.at(instant) - instant
  }
}
