/** What the demo's processes tell each other, and where they leave their evidence. */

/** The task that all pods run. */
export const taskName = 'send-report'
/** Every second. */
export const cron = '* * * * * *'
/** Short enough that a killed pod's slot is taken over before the next one is due. */
export const ttlMs = 600
/** The pod of this index hears its timers this much late. */
export const lateIndex = 1
export const lateMs = 300

/** Most slots take 5 ms; every fourth takes long enough to be hit in the middle. */
export function workMs(slot: number): number {
  return isLong(slot) ? 400 : 5
}

export function isLong(slot: number): boolean {
  return (slot / 1000) % 4 === 0
}

/** What a pod is started with, as JSON in its first argument. */
export interface PodOrders {
  readonly url: string
  readonly namespace: string
  readonly pod: string
  readonly lateMs: number
  /** Each run leaves a line here before and after its work: the evidence, independent of the library. */
  readonly journal: string
}

export type PodMessage =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'started' | 'finished'
      readonly slot: number
      readonly attempt: number
      readonly fence: number
    }
  | { readonly kind: 'decided'; readonly slot: number; readonly outcome: string }
  /** The same cron without protection fired. */
  | { readonly kind: 'unprotected'; readonly slot: number }
  | { readonly kind: 'failed'; readonly message: string }

export interface JournalLine {
  readonly pod: string
  readonly what: 'started' | 'finished' | 'unprotected'
  readonly slot: number
  readonly attempt: number
}
