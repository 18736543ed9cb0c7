/*
 * What a run consists of, as data: drawn from a seed, and then nothing else is random. So a plan can be played again, and
 * cut down while it still breaks a promise.
 */

export interface Plan {
  readonly seed: number
  readonly push: boolean
  readonly maxBatch: number
  readonly nodes: readonly NodePlan[]
  readonly tasks: readonly TaskPlan[]
  /** A task that timers of something else fire, by `fire` deeds. */
  readonly fired: FiredPlan | null
  readonly deeds: readonly Deed[]
  readonly faults: readonly CallFault[]
  /** When the faults end, and everything has to come to rest. Virtual milliseconds, as all times here. */
  readonly endsAt: number
}

export interface NodePlan {
  readonly name: string
  readonly wallOffsetMs: number
  /** How fast its clocks run. Within the safety margin, or faster, unless this run has the named exception. */
  readonly rate: number
  /** How long a call takes there, and an answer back. */
  readonly lagMs: number
  /** Every one of its timers rings so much too late. */
  readonly timersLateMs: number
  /** It is left dead when the faults end. */
  readonly isDeadInTheEnd: boolean
}

export interface TaskPlan {
  readonly name: string
  readonly everyMs: number
  /** The interval after an edit, for lives that begin with one. */
  readonly editedEveryMs: number
  readonly ttlMs: number
  readonly onCrash: 'skip' | 'retry'
  readonly catchUp: 'none' | 'latest' | 'all'
  /** Null: a day. */
  readonly catchUpWindowMs: number | null
  readonly catchUpMax: number
  readonly startDeadlineMs: number
  readonly overlap: 'skip' | 'queue' | 'cancel'
  readonly timeoutMs: number | null
  readonly jitterMs: number
  /** The key of a lock that its runs take. */
  readonly lock: string | null
  readonly lockWaitMs: number
  /** How long its runs take, in turn. */
  readonly workMs: readonly number[]
}

export interface FiredPlan {
  readonly name: string
  readonly everyMs: number
  readonly ttlMs: number
  readonly startDeadlineMs: number
  readonly workMs: number
}

/** Something that is done to a node, by it, or to the store. */
export type Deed = { readonly at: number; readonly node: string } & (
  | ({ readonly kind: 'acquire' } & AcquireDeed)
  | { readonly kind: 'revoke'; readonly key: string }
  | { readonly kind: 'look'; readonly key: string }
  /** SIGSTOP; or user code that blocks the event loop, and then goes on without a look at its timers; or a suspend. */
  | {
      readonly kind: 'pause' | 'block' | 'suspend'
      readonly forMs: number
      readonly answersFirst: boolean
    }
  | { readonly kind: 'crash'; readonly downMs: number; readonly isEdited: boolean }
  | {
      readonly kind: 'restart'
      readonly downMs: number
      readonly isEdited: boolean
      readonly drainMs: number
    }
  /** The node does not reach the store: calls hang, or fail at once. */
  | { readonly kind: 'outage'; readonly forMs: number; readonly hangs: boolean }
  | { readonly kind: 'set-wall-clock'; readonly byMs: number }
  | { readonly kind: 'control'; readonly task: string; readonly what: 'pause' | 'resume' | 'cancel' }
  | { readonly kind: 'trigger'; readonly task: string; readonly requestId: string }
  /** A range of the store's time, in milliseconds since the beginning. */
  | {
      readonly kind: 'backfill'
      readonly task: string
      readonly requestId: string
      readonly from: number
      readonly to: number
    }
  /** Something that knows the slots fires one, in milliseconds since the beginning. */
  | { readonly kind: 'fire'; readonly slot: number }
  | ({ readonly kind: 'exception' } & NamedException)
)

/** What the promises do not cover. Reported as a figure where it lets two believe. */
export type NamedException =
  | { readonly what: 'delete-record' | 'immediate-release'; readonly key: string }
  | { readonly what: 'lose-data' }
  | { readonly what: 'step-store-clock'; readonly byMs: number }

export interface AcquireDeed {
  readonly key: string
  readonly ttlMs: number
  readonly waitMs: number
  readonly hasHeartbeat: boolean
  readonly maxLifetimeMs: number | null
  readonly abortAfterMs: number | null
  /** How long it is held; null: until it is lost, or the end. */
  readonly holdMs: number | null
  readonly extendToMs: number | null
  /** `run` is `runExclusive`, `throw` the same with a function that throws. */
  readonly how: 'lease' | 'release-twice' | 'run' | 'throw'
}

export const faultKinds = [
  'refused',
  'failed-before',
  'lost-answer',
  'late-call',
  'late-answer',
  'hang-before',
  'hang-after',
  'twice',
  'sent-again',
  'deadlock',
  'busy',
  'failed-item',
] as const

/** What the network or the store does to one call. */
export interface CallFault {
  readonly node: string
  /** The nth call of the node, over all its lives. */
  readonly call: number
  readonly kind: (typeof faultKinds)[number]
  readonly delayMs: number
}
