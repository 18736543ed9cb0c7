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
  readonly hotKeys: readonly string[]
  readonly coldKeys: readonly string[]
  /** How its clocks run, against the host's. */
  readonly clock: ClockError
  /** A bug to plant, by name; `docs/torture.md` lists them. */
  readonly plant: string | null
}

export interface ClockError {
  /** Rate of the monotonic clock; within the margin, or G1 does not hold. */
  readonly monotonicRate: number
  readonly wallRate: number
  readonly wallOffsetMs: number
}

/** Where a worker can be told to kill itself the next time it gets there. */
export type DeathPoint = 'after-grant' | 'mid-renewal' | 'after-completion' | 'after-claim'

export type WorkerOrder =
  | { readonly do: 'block'; readonly ms: number }
  | { readonly do: 'step-clock'; readonly ms: number }
  | { readonly do: 'die'; readonly at: DeathPoint }
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
  | ({ readonly tell: 'resource' } & ResourceRequest)
