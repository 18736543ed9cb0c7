import type { LockService } from 'leasehold'
import type { SeededRandom } from 'leasehold/testing'
import type { ClientName } from '../../test/programs/open-locks.ts'

/** A way to the store for one worker. */
export interface Way {
  readonly client: ClientName
  readonly by: 'application' | 'connect'
  readonly url: string
}

/** What one strike did to the store. */
export interface Strike {
  /** How long the store's changes had reached no replica when it began; 0 if it has none. */
  readonly withheldMs: number
  /** What the store had acknowledged and then forgot, in bytes of its log. */
  readonly lostBytes: number
  /** From the end of the old primary, or of its exclusiveness, to the moment at which the new one takes writes. */
  readonly switchedAfterMs: number
  /** How long the old primary went on answering beside the new one. */
  readonly splitMs: number
  /** How far the clock was stepped. */
  readonly steppedMs: number
}

export interface Stage {
  readonly random: SeededRandom
  /** Writes down that what is held at this moment may be broken. */
  except(): void
  wait(ms: number): Promise<void>
}

/** A store to which something can be done, again and again, after which two may hold one key for a moment. */
export interface Upheaval {
  /** For the one who looks at the store afterwards. */
  readonly operatorUrl: string
  readonly ways: readonly Way[]
  strike(stage: Stage): Promise<Strike>
  /** Brings the store back into the state in which it can be struck again. */
  repair(operator: LockService, ttlMs: number): Promise<void>
  close(): Promise<void>
}
