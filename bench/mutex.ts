import type { Role } from './scenario.ts'

/** A lock library as the scenarios see it. */
export interface Mutex {
  /** One try: null if the key is held by somebody else. */
  readonly tryAcquire: (key: string) => Promise<Hold | null>
  /** Waits for the key by the library's own means, as its documentation recommends them. */
  readonly acquire: (key: string) => Promise<Hold>
  readonly close: () => Promise<void>
}

export interface Hold {
  /** @throws Error unless the key was ours until now, as far as the library tells */
  readonly release: () => Promise<void>
}

/** A subject whose locks are mutexes. */
export interface MutexSubject<Connections> {
  readonly name: string
  readonly role: Role
  readonly open: (connections: Connections) => Promise<Mutex>
}

/** @param isMine gives the key back, and tells whether it was still ours */
export function confirmed(isMine: () => Promise<boolean>): Hold {
  return {
    async release() {
      if (!(await isMine())) throw new Error('It was not ours any more')
    },
  }
}

/** @throws Error if a cycle of this mutex does not exclude anybody, or frees nothing */
export async function assertExcludes(name: string, mutex: Mutex): Promise<void> {
  const key = freshKey()
  const first = await mutex.tryAcquire(key)
  if (first === null) throw new Error(`${name} refused a fresh key`)
  if ((await mutex.tryAcquire(key)) !== null) throw new Error(`${name} granted a key that is held`)
  await first.release()
  const second = await mutex.tryAcquire(key)
  if (second === null) throw new Error(`${name} did not free a released key`)
  await second.release()
}

/**
 * Cycles fresh keys for a time.
 * @param callers how many loops do so at once
 * @returns cycles per second
 */
export async function cycle(mutex: Mutex, callers: number, ms: number): Promise<number> {
  const startedAt = performance.now()
  let cycles = 0
  const loop = async (): Promise<void> => {
    while (performance.now() - startedAt < ms) {
      await cycleOnce(mutex, freshKey())
      cycles += 1
    }
  }
  await Promise.all(Array.from({ length: callers }, loop))
  return cycles / ((performance.now() - startedAt) / 1_000)
}

/** @throws Error if somebody else holds the key */
export async function cycleOnce(mutex: Mutex, key: string): Promise<void> {
  const hold = await mutex.tryAcquire(key)
  if (hold === null) throw new Error(`${key} was refused`)
  await hold.release()
}

let keys = 0

/** A key that nobody has used, nor will in another process. */
export function freshKey(): string {
  return `key:${process.pid}:${keys++}`
}

/** For those that only try. */
export async function noWaiting(): Promise<never> {
  throw new Error('It has no way to wait')
}
