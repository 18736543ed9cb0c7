import type { Lease } from '../core/lease.ts'
import type { LockService } from '../core/lock-service.ts'
import type { LeaseOptions } from '../core/options.ts'
import type { Draining } from './drain.ts'
import type { FiredRun } from './scheduled-task-store.ts'

/** Functions that run under the lock of their name, without slots. */
export class LockedRuns implements Draining {
  readonly #locks: LockService
  readonly #running = new Set<Promise<unknown>>()

  constructor(locks: LockService) {
    this.#locks = locks
  }

  async run(name: string, fn: (run: FiredRun) => unknown, options: LeaseOptions): Promise<'ran' | 'skipped'> {
    const running = this.#locks.runExclusively(name, (lease) => fn(viewOf(name, lease)), options)
    this.#running.add(running)
    try {
      return await running
    } finally {
      this.#running.delete(running)
    }
  }

  async drain(): Promise<void> {
    await Promise.allSettled(this.#running)
  }

  /** They hear of it when the service closes: their leases end then. */
  cutShort(): void {}

  giveUp(): void {}
}

function viewOf(task: string, lease: Lease): FiredRun {
  return {
    task,
    slot: null,
    fence: lease.fence,
    get signal() {
      return lease.signal
    },
    get remainingMs() {
      return lease.remainingMs
    },
    isHeld: () => lease.isHeld(),
    assertHeld: () => lease.assertHeld(),
  }
}
