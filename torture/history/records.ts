// What processes write down while they run, and the checkers read afterwards. Nothing here is the library's.

/** Milliseconds since this machine booted, exact to the microsecond: one clock for all its processes. */
export function now(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}

/** A lease or a run, from its grant on. `of`: `lock:<key>` or `task:<name>`. */
export interface HoldName {
  readonly of: string
  readonly fence: number
}

export interface RunName {
  readonly slot: number
  readonly attempt: number
}

/** What a worker saw. `until` is the moment after which it no longer trusts what it holds, as of that record. */
export type WorkerFact =
  | {
      readonly is: 'begun'
      readonly place: number
      readonly client: string
      /** Which edition of the edited task it runs, and the host's wall clock before it could tell anybody. */
      readonly edition: number
      readonly wall: number
      /** Host name and process id, as anybody in it sees them. */
      readonly self: string
    }
  /** `ask` numbers what a process asks for; `waitMs`: how long it is ready to wait, null for as long as it takes. */
  | { readonly is: 'asked'; readonly of: string; readonly ask: number; readonly waitMs: number | null }
  /** The call has settled, with a lease or without. `held` is the honest null; anything else the code of an error. */
  | { readonly is: 'settled'; readonly of: string; readonly ask: number; readonly outcome: string }
  | ({
      readonly is: 'granted'
      readonly until: number
      /** Of a lease: the number under which it was asked for. */
      readonly ask?: number
      readonly run?: RunName
      readonly wall?: number
    } & HoldName)
  /** A confirmed renewal, or a look at what is left. */
  | ({ readonly is: 'trusted'; readonly until: number } & HoldName)
  | ({ readonly is: 'lost'; readonly reason: string } & HoldName)
  /** The signal of a run was aborted although its lease is still held; it is not aborted again when that is lost. */
  | ({ readonly is: 'told-to-stop'; readonly reason: string } & HoldName)
  /** Written before the release is called, or when a handler has settled: nothing is believed from here on. */
  | ({ readonly is: 'let-go'; readonly run?: RunName; readonly outcome?: 'done' | 'threw' } & HoldName)
  | ({ readonly is: 'given-back'; readonly outcome: string; readonly tookMs: number } & HoldName)
  /** What a callback under a lease came to, and what its caller was given for it. */
  | {
      readonly is: 'returned'
      readonly of: string
      readonly fence: number
      readonly wanted: string
      readonly got: string
    }
  /** So many leases of one process were granted, and what was left of them after a while. */
  | {
      readonly is: 'hoarded'
      readonly leases: number
      readonly from: number
      readonly held: number
      readonly lost: number
    }
  /** The event loop did not turn since `from`. */
  | { readonly is: 'gap'; readonly from: number }
  /** It turns; written every now and then. */
  | { readonly is: 'turn' }
  | { readonly is: 'unhandled'; readonly error: string }
  /** Everything was closed; from here on the process ends by itself. */
  | { readonly is: 'closed' }
  /** It has not ended some time after that: what keeps it alive. */
  | { readonly is: 'lingers'; readonly resources: readonly string[]; readonly busy: string }

/** Faults after which two may hold one key for a moment, as `docs/guarantees.md` names them. */
export const exceptionKinds = [
  'deletion',
  'emptied',
  'data-loss',
  'immediate-release',
  'failover',
  'server-clock',
] as const
export type ExceptionKind = (typeof exceptionKinds)[number]

/** What the process that runs it all saw. */
export type ObserverFact =
  | {
      readonly is: 'fault'
      readonly kind: string
      readonly phase: 'begin' | 'end'
      readonly place?: number
      /** Set where G1 may break; of what, or of everything. */
      readonly exception?: { readonly kind: ExceptionKind; readonly of: string | null }
    }
  /** A request to the fenced resource, in the order in which it was served. */
  | ({
      readonly is: 'resource'
      readonly verb: 'read' | 'write'
      readonly value: number
      readonly accepted: boolean
    } & HoldName)
  | {
      readonly is: 'ended'
      readonly worker: string
      readonly how: string
      /** Who ended it: a fault, or it was asked to end by itself. */
      readonly cause: 'killed' | 'asked' | 'nobody'
      readonly tookMs: number
    }
  /** All faults are over. */
  | { readonly is: 'calm' }
  /** After all workers have ended, a stranger takes the key. */
  | { readonly is: 'probe'; readonly of: string; readonly outcome: string; readonly tookMs: number }

export type Fact = WorkerFact | ObserverFact
/** One line of a history: who wrote it, and when. */
export type Line = Fact & { readonly at: number; readonly by: string }
