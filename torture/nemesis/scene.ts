import type { LockService } from 'leasehold'
import type { SeededRandom } from 'leasehold/testing'
import type { Fleet, Place } from '../fleet.ts'
import type { ExceptionKind } from '../history/records.ts'
import type { Store } from '../store.ts'
import type { Administrator } from './administrator.ts'

/** What a fault can work on. */
export interface Scene {
  readonly fleet: Fleet
  readonly store: Store
  readonly random: SeededRandom
  readonly ttlMs: number
  readonly namespace: string
  readonly hotKeys: readonly string[]
  readonly administrator: Administrator
  /** An operator's, past all proxies. */
  readonly operator: LockService
  /** Aborts when the faults are to end. */
  readonly over: AbortSignal
  /** Waits, at most until the faults are to end. */
  wait(ms: number): Promise<void>
  /** Nothing but many leases was asked for, and all of them are. */
  readonly isAlone: boolean
  /** What a key of each crowd and hoard begins with: at the end they have to be free. */
  readonly massKeys: string[]
  /** Writes down that from now on G1 may be broken, of one name or of everything. */
  except(kind: ExceptionKind, of: string | null): void
}

/** One way to make trouble: begins, lasts, and has ended when its promise resolves. */
export interface Fault {
  readonly kind: string
  /** Which stores it can be done to. Default: all. */
  readonly drivers?: readonly Store['driver'][]
  /** How often it is picked beside the others. Default 1. */
  readonly weight?: number
}

/** Strikes one worker, or its way to the store. */
export interface PlaceFault extends Fault {
  strike(scene: Scene, place: Place): Promise<void>
  /** Where it can be done. Default: everywhere. */
  suits?(place: Place): boolean
}

/** Strikes the store, and with it everybody. */
export interface StoreFault extends Fault {
  strike(scene: Scene): Promise<void>
}

export const servers = ['redis', 'postgres'] as const

/** A duration between two multiples of the ttl. */
export function around({ random, ttlMs }: Scene, least: number, most: number): number {
  return ttlMs * (least + random.next() * (most - least))
}
