import type { LockDriver } from './lock-driver.ts'
import type { TaskDriver } from './task-driver.ts'

/**
 * What speaks to one kind of store. A driver holds the user's client or a path and nothing else; all work happens
 * in sessions, one for each namespace in use.
 *
 * Drivers contain no policy: no retry loop, no timer, no logging, no event. The core does that once for all.
 */
export interface Driver {
  /** `'memory'`, `'sqlite'`, `'postgres'`, … for messages, metrics and tests. */
  readonly name: string
  readonly abilities: DriverAbilities

  /**
   * Opens the view of one namespace. Cheap and synchronous: nothing is sent before the first call.
   *
   * @param namespace the stored form of the namespace: 1 to 255 UTF-8 bytes, no NUL, well-formed.
   */
  open(namespace: string): DriverSession
}

/** What a driver can do, so that no caller ever asks for its type. */
export interface DriverAbilities {
  /** A release wakes waiters in other processes ({@link DriverSession.listen} is there and can work). */
  readonly push: boolean
  /** Whose clock decides expiry: a server's, or this host's (then a process with a faked clock is out of scope). */
  readonly clock: 'server' | 'host'
  /** Who shares the store: one process, the processes of one host, or any number of hosts. */
  readonly reach: 'process' | 'host' | 'network'
  /** The shortest ttl the store can keep, in milliseconds. */
  readonly minTtlMs: number
  /** The most items that one call takes; the core splits longer batches. */
  readonly maxBatch: number
}

/** One namespace of one store. Two sessions never see each other's keys unless their namespaces are equal. */
export interface DriverSession {
  readonly locks: LockDriver
  readonly tasks: TaskDriver

  /**
   * Opens the push channel of the namespace, on a connection of its own where the store needs one. The promise
   * resolves once the store has confirmed the subscription; it rejects where push is not to be had, and the core
   * polls then. Absent where the driver has no push at all. The core opens it only while somebody waits.
   */
  readonly listen?: ((listener: NoticeListener) => Promise<NoticeChannel>) | undefined

  /** Ends what this session opened, and nothing that the user opened. Idempotent, never rejects. */
  close(): Promise<void>
}

/** What a push channel tells. */
export type Notice =
  /** The key may be free now. */
  | { readonly kind: 'released'; readonly key: string }
  /** The namespace's control version went up: pause, resume, trigger, edits. */
  | { readonly kind: 'control'; readonly version: number }
  /** The channel's connection was lost and is back: any notice may have been missed, so look at everything once. */
  | { readonly kind: 'missed' }

export interface NoticeListener {
  onNotice(notice: Notice): void
  /** The channel hears nothing any more and will not recover by itself. Called at most once; then close it. */
  onDeaf(error: unknown): void
}

export interface NoticeChannel {
  /**
   * Sends a message to itself through the store and resolves when it came back. The core calls it after opening and
   * again while somebody waits: behind a transaction pooler a subscription succeeds and hears nothing.
   */
  probe(): Promise<void>
  /** Unsubscribes and ends the connection that was opened for it. Idempotent, never rejects. */
  close(): Promise<void>
}

/** How one call is to be made. */
export interface CallOptions {
  /** 1 for the first try. From 2 on, a driver that can use another connection does: the last one may hang. */
  readonly attempt: number
  /**
   * What to do about records that another statement has locked this instant: answer `busy` for them (`'skip'`), or
   * wait for the other statement (`'wait'`). Stores without such locks ignore it.
   */
  readonly lockedRows: 'skip' | 'wait'
}

/** This item could not be handled; the others of its batch were. */
export interface FailedAnswer {
  readonly outcome: 'failed'
  readonly error: unknown
}

/** The record is locked by another statement this instant. Never means lost, held or free: ask again. */
export interface BusyAnswer {
  readonly outcome: 'busy'
}
