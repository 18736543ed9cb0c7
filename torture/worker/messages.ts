// What the worker processes and the one that runs them tell each other.
import type { StoreAddress } from '../../test/programs/open-locks.ts'

/** A worker's first argument, as JSON. */
export interface WorkerOrders {
  /** `w3-2`: the second process at the third place. */
  readonly name: string
  readonly place: number
  readonly seed: number
  readonly journal: string
  readonly address: StoreAddress
  readonly namespace: string
  readonly ttlMs: number
  readonly requestTimeoutMs: number
  readonly hotKeys: readonly string[]
  readonly coldKeys: readonly string[]
  /** How its clocks run, against the host's. */
  readonly clock: ClockError
  /** Which edition of the schedule of the task `edited` it runs. */
  readonly edition: number
  /** It says that it is the same process on the same host as all others. */
  readonly disguised: boolean
  /** A bug to plant, by name; `docs/torture.md` lists them. */
  readonly plant: string | null
}

export interface ClockError {
  /** Rate of the monotonic clock; within the margin, or G1 does not hold. */
  readonly monotonicRate: number
  readonly wallRate: number
  readonly wallOffsetMs: number
  /** Whether it is wrong at all; then everybody in the process is told the wrong time. */
  readonly isWrong: boolean
}

/** Where a worker can be told to kill itself the next time it gets there. */
export type DeathPoint = 'after-grant' | 'mid-renewal' | 'after-completion' | 'after-claim'

export type WorkerOrder =
  | { readonly do: 'block'; readonly ms: number }
  | { readonly do: 'step-clock'; readonly ms: number }
  | { readonly do: 'drift-clock'; readonly wallRate: number }
  | { readonly do: 'die'; readonly at: DeathPoint }
  /** Foreign work takes all connections of the application's client. */
  | { readonly do: 'occupy-pool'; readonly ms: number }
  /** Every callback throws, dawdles or never returns. */
  | { readonly do: 'misbehave'; readonly ms: number }
  | { readonly do: 'crowd'; readonly id: number; readonly key: string; readonly waiters: number }
  | {
      readonly do: 'hoard'
      readonly id: number
      readonly prefix: string
      readonly leases: number
      readonly ms: number
    }
  | { readonly do: 'answer'; readonly id: number; readonly accepted: boolean; readonly value: number }
  | { readonly do: 'leave' }

/** A request to the fenced resource. */
export interface ResourceRequest {
  readonly id: number
  readonly verb: 'read' | 'write'
  readonly of: string
  readonly fence: number
  readonly value: number
}

export type WorkerMessage =
  | { readonly tell: 'ready' }
  | { readonly tell: 'closed' }
  /** What was ordered under this id is done. */
  | { readonly tell: 'done'; readonly id: number }
  | ({ readonly tell: 'resource' } & ResourceRequest)
