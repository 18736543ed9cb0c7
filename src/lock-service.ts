import { LockService as CoreLockService } from './core/lock-service.ts'
import type { LockServiceOptions } from './core/options.ts'
import { memoryDriver } from './drivers/memory/index.ts'

/**
 * Locks as leases, on one namespace of one store; in-process unless it is given a driver. Make one for a process and
 * share it: its renewals and concurrent calls travel together.
 */
export class LockService extends CoreLockService {
  /** @throws InvalidOptionError */
  constructor(options: LockServiceOptions = {}) {
    super(lacksDriver(options) ? { ...options, driver: memoryDriver() } : options)
  }
}

/** What is no options object at all is left for the core to refuse. */
function lacksDriver(options: LockServiceOptions): boolean {
  return (
    typeof options === 'object' && options !== null && !Array.isArray(options) && options.driver === undefined
  )
}
