/*
 * What happened in a run, in the order in which it happened: written by the store, the network and the nodes, read by the
 * checkers. Keys of tasks are written `task <name>`, so that leases of runs are checked like all others.
 */

export type Entry = { readonly at: number } & (
  | StoreEntry
  | NetworkEntry
  | NodeEntry
  | EndEntry
  | { readonly kind: 'exception'; readonly what: string; readonly key: string | null; readonly byMs: number }
)

/** What the store did, the moment it did it: before the answer has travelled, if it ever arrives. `by` is a life. */
export type StoreEntry =
  | {
      readonly kind: 'grant'
      readonly by: string
      readonly key: string
      readonly token: string
      readonly fence: number
      /** Until it lapses. */
      readonly forMs: number
      readonly ttlMs: number
      /** The same token has it already, under this fence. */
      readonly isAgain: boolean
      /** Another token's lease of the key was there, had lapsed, and nobody had given it back. */
      readonly isTakeover: boolean
    }
  | { readonly kind: 'refusal'; readonly by: string; readonly key: string }
  | {
      readonly kind: 'renewal'
      readonly by: string
      readonly key: string
      readonly token: string
      readonly outcome: 'held' | 'lost'
      readonly forMs: number
      readonly ttlMs: number
    }
  | {
      readonly kind: 'freeing'
      readonly by: string
      readonly key: string
      readonly token: string
      readonly outcome: string
      /** The lease of another token was there before, and is not the same afterwards. */
      readonly hasHarmed: boolean
    }
  | { readonly kind: 'emptiness'; readonly by: string; readonly key: string }
  | {
      readonly kind: 'claim'
      readonly by: string
      readonly task: string
      readonly slot: number
      readonly after: number
      readonly decide: 'run' | 'miss'
      readonly gap: string
      /** The request that a claim of a manual run is about; null for a slot of the schedule. */
      readonly order: string | null
      readonly outcome: string
      readonly reason: string
      readonly token: string
      /** Of the run that was granted; 0 otherwise. */
      readonly attempt: number
      readonly fence: number
      readonly mark: number
      readonly storeNow: number
    }
  | {
      readonly kind: 'completion'
      readonly by: string
      readonly task: string
      readonly slot: number
      readonly attempt: number
      readonly fence: number
      readonly outcome: string
      readonly reason: string | null
      readonly answer: string
    }
  /** A request about a task, as the store took it; `what` is its kind, and of an order what becomes of the orders. */
  | {
      readonly kind: 'request'
      readonly by: string
      readonly task: string
      readonly what: string
      readonly requestId: string
      readonly outcome: string
      readonly orders: string
    }
  | {
      readonly kind: 'registration'
      readonly by: string
      readonly task: string
      readonly outcome: string
      readonly mark: number
    }

export type NetworkEntry =
  | {
      readonly kind: 'call'
      readonly by: string
      readonly number: number
      readonly verb: string
      readonly what: string
      readonly fault: string | null
    }
  | { readonly kind: 'delivery-again'; readonly by: string; readonly number: number }
  | { readonly kind: 'answer'; readonly by: string; readonly number: number }
  /** An answer about a lease or run reached its node, in time to be looked at. */
  | {
      readonly kind: 'told'
      readonly by: string
      readonly token: string
      readonly outcome: 'held' | 'lost'
      readonly sentAt: Clocks
      /** On the clock of the node. */
      readonly tookMs: number
      readonly forMs: number
    }

/** What the clocks of a node show. */
export interface Clocks {
  readonly monotonic: number
  readonly wall: number
}

export type NodeEntry =
  | {
      readonly kind: 'asks'
      readonly by: string
      readonly ask: number
      readonly key: string
      readonly how: string
    }
  | { readonly kind: 'null'; readonly by: string; readonly ask: number; readonly key: string }
  | {
      readonly kind: 'error'
      readonly by: string
      readonly during:
        | 'acquire'
        | 'extend'
        | 'release'
        | 'revoke'
        | 'look'
        | 'order'
        | 'fire'
        | 'scheduler'
        | 'stop'
        | 'close'
      readonly key: string
      readonly code: string
      readonly message: string
    }
  | {
      readonly kind: 'belief'
      readonly by: string
      readonly key: string
      readonly token: string
      readonly fence: number
      readonly clocks: Clocks
      readonly isHeld: boolean
    }
  /** What the holder would say if it was asked now. */
  | {
      readonly kind: 'sample'
      readonly by: string
      readonly key: string
      readonly token: string
      readonly fence: number
      readonly clocks: Clocks
      /** Its loss signal has been heard. */
      readonly isTold: boolean
      readonly isHeld: boolean
      /** What the signal itself says. */
      readonly isAborted: boolean
      /** So long, in its own milliseconds, its event loop has run and its clocks have not jumped; -1: it stands still. */
      readonly awakeForMs: number
      /** So late may timers be at present. */
      readonly slackMs: number
    }
  | {
      readonly kind: 'loss'
      readonly by: string
      readonly key: string
      readonly token: string
      readonly fence: number
      readonly reason: string
      readonly clocks: Clocks
      readonly awakeForMs: number
      readonly slackMs: number
    }
  /** It was given back, or its work has ended: nothing is believed any more. */
  | {
      readonly kind: 'end'
      readonly by: string
      readonly key: string
      readonly token: string
      readonly fence: number
    }
  | {
      readonly kind: 'released'
      readonly by: string
      readonly key: string
      readonly fence: number
      readonly outcome: string
      readonly tookMs: number
      readonly wasHeldUp: boolean
    }
  | { readonly kind: 'ran'; readonly by: string; readonly key: string; readonly isOwnResult: boolean }
  | {
      readonly kind: 'run'
      readonly by: string
      readonly task: string
      readonly slot: number
      readonly attempt: number
      readonly fence: number
      readonly isManual: boolean
    }
  /** The lock of a run was lost: whether the run's signal says so in the same turn. */
  | {
      readonly kind: 'lock-lost'
      readonly by: string
      readonly task: string
      readonly fence: number
      readonly isTold: boolean
    }
  /** What a request for manual runs came to. */
  | {
      readonly kind: 'ordered'
      readonly by: string
      readonly task: string
      readonly requestId: string
      readonly what: 'trigger' | 'backfill'
      readonly outcome: string
    }
  | { readonly kind: 'fires'; readonly by: string; readonly task: string; readonly slot: number }
  /** What a fire came to, and whether its function was called. */
  | {
      readonly kind: 'fired'
      readonly by: string
      readonly task: string
      readonly slot: number
      readonly outcome: string
      readonly hasRun: boolean
    }
  | { readonly kind: 'revoked'; readonly by: string; readonly key: string; readonly outcome: string }
  | {
      readonly kind: 'looked'
      readonly by: string
      readonly key: string
      readonly isHeld: boolean
      readonly ask: number
    }
  | {
      readonly kind:
        | 'starts'
        | 'pauses'
        | 'blocks'
        | 'suspends'
        | 'goes-on'
        | 'crashes'
        | 'stops'
        | 'closes'
        | 'closed'
        | 'is-cut-off'
        | 'sets-wall-clock'
        | 'controls'
      readonly by: string
      readonly detail: string
    }

/** What was found when the faults had ended. */
export type EndEntry =
  | { readonly kind: 'faults-end' }
  | {
      readonly kind: 'inheritance'
      readonly key: string
      readonly tookMs: number
      readonly boundMs: number
      readonly isDone: boolean
    }
  | { readonly kind: 'task-end'; readonly task: TaskEnd }
  | { readonly kind: 'leak'; readonly by: string; readonly what: string }
  | { readonly kind: 'unsettled'; readonly by: string; readonly what: string }
  | { readonly kind: 'unhandled'; readonly message: string }

export interface TaskEnd {
  readonly name: string
  readonly storeNow: number
  readonly mark: number
  readonly everyMs: number
  readonly onCrash: 'skip' | 'retry'
  readonly maxAttempts: number
  readonly isPaused: boolean
  /** A node with the present schedule has lived and been well for a while. */
  readonly isAttended: boolean
  /** It has one schedule from first to last. */
  readonly isUnedited: boolean
  readonly isRunning: boolean
  /** The lease of its run has lapsed for so long, and nobody has cleared it. */
  readonly lapsedForMs: number
  /** Manual runs that were asked for and not begun. */
  readonly orders: string
  readonly log: readonly LogRow[]
  /** What `history()` tells an uninvolved process: `slot/attempt state reason`. */
  readonly told: readonly {
    readonly slot: number
    readonly attempt: number
    readonly state: string
    readonly reason: string | null
  }[]
}

export interface LogRow {
  readonly slot: number
  readonly attempt: number
  readonly state: string
  readonly reason: string | null
  readonly after: number
  readonly gap: string
  readonly late: string | null
}

export class History {
  readonly entries: Entry[] = []
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  add(entry: DistributiveOmit<Entry, 'at'>): void {
    this.entries.push({ at: this.#now(), ...entry })
  }
}

type DistributiveOmit<Union, Name extends string> = Union extends unknown ? Omit<Union, Name> : never

/** One line for each entry, tokens numbered in the order of their appearance: the same for the same run. */
export function traceOf(entries: readonly Entry[]): string[] {
  const tokens = new Map<string, string>()
  const shown = (name: string, value: unknown): unknown => {
    if (name !== 'token') return isFraction(value) ? Math.round(value * 1_000) / 1_000 : value
    const token = String(value)
    if (!tokens.has(token)) tokens.set(token, `t${tokens.size + 1}`)
    return tokens.get(token)
  }
  return entries.map(({ at, kind, ...more }) => {
    const who = 'by' in more ? `${more.by} ` : ''
    const { by: _by, ...rest } = more as Record<string, unknown>
    return `${Math.round(at * 1_000) / 1_000} ${who}${kind} ${JSON.stringify(rest, shown)}`
  })
}

function isFraction(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && !Number.isInteger(value)
}
