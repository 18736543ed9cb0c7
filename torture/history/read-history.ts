import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ExceptionKind, Line, RunName } from './records.ts'

type LineOf<Is extends Line['is']> = Extract<Line, { readonly is: Is }>

/** One lease or run as its holder saw it. */
export interface Hold {
  readonly of: string
  readonly fence: number
  readonly by: string
  readonly run: RunName | null
  /** When its holder had asked for it; -Infinity if that is not known, as of a run. */
  readonly askedAt: number
  /** The wall clock of the host when a run began. */
  readonly wall: number
  readonly from: number
  /** The last moment at which it was to be trusted, had nothing else ended it. */
  readonly deadline: number
  /** When it was let go, lost, or its process died; Infinity if nothing of it was recorded. */
  readonly letGoAt: number
  readonly lostAt: number
  readonly lossReason: string | null
  /** When its signal was aborted for another reason. */
  readonly toldToStopAt: number
  readonly diedAt: number
  readonly outcome: 'done' | 'threw' | null
  readonly releaseOutcome: string | null
  /** When the release was answered. */
  readonly givenBackAt: number
}

/** A moment from which on G1 may be broken for what was held then. */
export interface Exception {
  readonly at: number
  readonly kind: ExceptionKind
  readonly of: string | null
}

/** A fault, from its beginning to its end. */
export interface FaultInterval {
  readonly kind: string
  readonly place: number | undefined
  readonly from: number
  readonly to: number
}

/** All that was written down, in the order of time. */
export class History {
  readonly lines: readonly Line[]
  readonly holds: readonly Hold[]
  readonly exceptions: readonly Exception[]
  readonly faults: readonly FaultInterval[]

  constructor(lines: readonly Line[]) {
    this.lines = lines.toSorted((a, b) => a.at - b.at)
    this.holds = toHolds(this.lines)
    this.exceptions = this.all('fault').flatMap(({ at, phase, exception }) =>
      exception === undefined || phase === 'end' ? [] : [{ at, ...exception }],
    )
    this.faults = toIntervals(this.all('fault'))
  }

  all<Is extends Line['is']>(is: Is): readonly LineOf<Is>[] {
    return this.lines.filter((line): line is LineOf<Is> => line.is === is)
  }

  /** The holds of each key and task, in the order of their grants. */
  get byName(): ReadonlyMap<string, readonly Hold[]> {
    const byName = new Map<string, Hold[]>()
    for (const hold of this.holds) {
      const others = byName.get(hold.of)
      if (others === undefined) byName.set(hold.of, [hold])
      else others.push(hold)
    }
    return byName
  }

  /** The first named exception that concerns this name between two moments. */
  exceptionBetween(from: number, to: number, of: string): Exception | undefined {
    return this.exceptions.find(
      (exception) =>
        exception.at >= from && exception.at <= to && (exception.of === null || exception.of === of),
    )
  }
}

/** Until when its holder believed in it: G1's interval ends at the first of these. */
export function beliefEnd({ deadline, letGoAt, lostAt, diedAt }: Hold): number {
  return Math.min(deadline, letGoAt, lostAt, diedAt)
}

export function readHistory(folder: string): History {
  const files = readdirSync(folder).filter((name) => name.endsWith('.jsonl'))
  const lines = files.flatMap((name) => {
    const texts = readFileSync(join(folder, name), 'utf8').split('\n')
    return texts.filter((text) => text !== '').map((text) => JSON.parse(text) as Line)
  })
  return new History(lines)
}

function toIntervals(lines: readonly LineOf<'fault'>[]): readonly FaultInterval[] {
  const intervals: FaultInterval[] = []
  const open = new Map<string, FaultInterval>()
  for (const { kind, place, phase, at } of lines) {
    const name = `${kind} ${place}`
    const begun = open.get(name) ?? { kind, place, from: at, to: Infinity }
    if (phase === 'begin') open.set(name, begun)
    else {
      intervals.push({ ...begun, to: at })
      open.delete(name)
    }
  }
  return [...intervals, ...open.values()]
}

type Open = { -readonly [Name in keyof Hold]: Hold[Name] }

function toHolds(lines: readonly Line[]): readonly Hold[] {
  const all: Open[] = []
  /** By holder, name and fence; a store that repeats a fence begins a new one. */
  const latest = new Map<string, Open>()
  const died = new Map<string, number>()
  /** Of a process that was paused between the grant and the first look of its caller, who comes after the signal. */
  const lostBefore = new Map<string, Extract<Line, { is: 'lost' }>>()
  const asked = new Map<string, number>()
  for (const line of lines) {
    if (line.is === 'asked') asked.set(`${line.by} ${line.ask}`, line.at)
    if (line.is === 'ended') died.set(line.worker, line.at)
    if (!('fence' in line) || line.is === 'resource' || line.is === 'returned') continue
    const name = `${line.by} ${line.of} ${line.fence}`
    if (line.is === 'granted') {
      const begun: Open = {
        of: line.of,
        fence: line.fence,
        by: line.by,
        run: line.run ?? null,
        askedAt: asked.get(`${line.by} ${line.ask}`) ?? -Infinity,
        wall: line.wall ?? 0,
        from: line.at,
        deadline: line.until,
        letGoAt: Infinity,
        lostAt: lostBefore.get(name)?.at ?? Infinity,
        lossReason: lostBefore.get(name)?.reason ?? null,
        toldToStopAt: Infinity,
        diedAt: Infinity,
        outcome: null,
        releaseOutcome: null,
        givenBackAt: Infinity,
      }
      all.push(begun)
      latest.set(name, begun)
      continue
    }
    const hold = latest.get(name)
    if (hold === undefined) {
      if (line.is === 'lost') lostBefore.set(name, line)
      continue
    }
    if (line.is === 'trusted') hold.deadline = Math.max(hold.deadline, line.until)
    if (line.is === 'lost' && hold.lostAt === Infinity) {
      hold.lostAt = line.at
      hold.lossReason = line.reason
    }
    if (line.is === 'told-to-stop') hold.toldToStopAt = line.at
    if (line.is === 'let-go') {
      hold.letGoAt = Math.min(hold.letGoAt, line.at)
      hold.outcome = line.outcome ?? null
    }
    if (line.is === 'given-back') {
      hold.releaseOutcome = line.outcome
      hold.givenBackAt = line.at
    }
  }
  for (const hold of all) hold.diedAt = died.get(hold.by) ?? Infinity
  return all
}
