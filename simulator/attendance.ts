import type { Entry } from './history.ts'
import { requestTimeoutMs } from './life.ts'
import type { EntryOf } from './checkers/violation.ts'

/**
 * When one process could have decided slots of a task, as the history shows it: it ran, the store had taken its schedule,
 * and its questions about tasks were answered.
 */
export interface Attendance {
  readonly by: string
  readonly isEdited: boolean
  /** From when until when it could not, in order. It could at all other times. */
  readonly absences: readonly Absence[]
}

interface Absence {
  readonly from: number
  readonly to: number
}

/** What has to be answered, or given up, before the next slot is claimed. */
const neededVerbs = new Set(['claim', 'inspect'])
/** Answers that bring the store's time. */
export const tellingTime: ReadonlySet<string> = new Set(['register', 'claim', 'poll'])
/** What names the tasks that it is about. */
const aboutTasks = new Set(['register', 'claim', 'inspect'])
/** The longest pause between two questions of a scheduler, after failures. */
const longestPauseMs = 5_000
/** An answer that takes longer may be one that nobody waits for any more, on a clock that runs fast. */
const promptMs = requestTimeoutMs / 1.25
/** The store was reached, and said that it cannot look at the item now. */
export const refusals: ReadonlySet<string> = new Set(['busy', 'failed-item'])

/** Of all processes, for one task. */
export function attendances(history: readonly Entry[], task: string): readonly Attendance[] {
  const logs = new Map<string, AbsenceLog>()
  for (const entry of history) {
    if (entry.kind === 'starts') logs.set(entry.by, new AbsenceLog(entry.by, entry.detail === 'edited'))
    else if ('by' in entry) logs.get(entry.by)?.read(entry, task)
  }
  return [...logs.values()].map((log) => log.ended())
}

/** Whether it could at every moment of this time. */
export function attended({ absences }: Attendance, from: number, to: number): boolean {
  return absences.every((absence) => absence.to <= from || absence.from >= to)
}

/** Why a process cannot decide slots just now; there may be several reasons at a time. */
class AbsenceLog {
  readonly #by: string
  readonly #isEdited: boolean
  readonly #absences: Absence[] = []
  /** By reason: since when. */
  readonly #open = new Map<string, number>()
  /** Disturbed questions that are still to be asked again: until when that excuses, at the latest. */
  readonly #excusedUntil = new Map<string, number>()
  readonly #questions = new Map<number, { readonly verb: string; readonly at: number }>()

  constructor(by: string, isEdited: boolean) {
    this.#by = by
    this.#isEdited = isEdited
    this.#open.set('unregistered', -Infinity)
  }

  read(entry: Entry, task: string): void {
    const { at } = entry
    switch (entry.kind) {
      case 'pauses':
      case 'blocks':
      case 'suspends':
        this.#begin('stands still', at)
        return
      case 'goes-on':
        this.#end('stands still', at)
        // Its timers, and what it knows of the store's time, stood still with its machine.
        if (entry.detail === 'suspend') this.#begin('does not know the time', at)
        return
      case 'crashes':
      case 'stops':
        this.#begin('gone', at)
        return
      case 'sets-wall-clock':
        this.#begin('does not know the time', at)
        return
      case 'error':
        // It is to be started again.
        if (entry.during === 'scheduler') this.#begin('unregistered', at)
        return
      case 'call':
        return this.#asked(entry, task)
      case 'answer':
        return this.#answered(entry)
      case 'registration':
      case 'claim':
        if (entry.task !== task) return
        if (entry.outcome === 'superseded') this.#begin('superseded', at)
        else this.#end('superseded', at)
        return
      default:
    }
  }

  ended(): Attendance {
    for (const [reason] of this.#open) this.#end(reason, this.#excusedUntil.get(reason) ?? Infinity)
    const absences = this.#absences.toSorted((one, other) => one.from - other.from)
    return { by: this.#by, isEdited: this.#isEdited, absences }
  }

  #asked({ at, number, verb, what, fault }: EntryOf<'call'>, task: string): void {
    const isAboutTask = !aboutTasks.has(verb) || what.split(' ').includes(task)
    if (isAboutTask && (fault === null || !refusals.has(fault))) this.#questions.set(number, { verb, at })
    if (fault === null || !neededVerbs.has(verb)) return
    // What is asked about other tasks may have to be answered or given up before this one gets its turn.
    if (!isAboutTask) this.#absences.push({ from: at, to: at + requestTimeoutMs })
    else {
      this.#begin(verb, at)
      this.#excusedUntil.set(verb, at + requestTimeoutMs + longestPauseMs)
    }
  }

  #answered({ at, number }: EntryOf<'answer'>): void {
    const { verb, at: askedAt } = this.#questions.get(number) ?? { verb: '', at: -Infinity }
    if (at - askedAt > promptMs) return
    if (verb === 'register') this.#end('unregistered', at)
    if (tellingTime.has(verb)) this.#end('does not know the time', at)
    this.#end(verb, at)
  }

  #begin(reason: string, at: number): void {
    const since = this.#open.get(reason)
    const until = this.#excusedUntil.get(reason) ?? Infinity
    if (since !== undefined && until < at) this.#end(reason, until)
    if (!this.#open.has(reason)) this.#open.set(reason, at)
  }

  #end(reason: string, at: number): void {
    const from = this.#open.get(reason)
    if (from === undefined) return
    const to = Math.min(at, this.#excusedUntil.get(reason) ?? Infinity)
    this.#absences.push({ from, to })
    this.#open.delete(reason)
    this.#excusedUntil.delete(reason)
  }
}
