import { LockService as CoreLockService } from './core/lock-service.ts'
import { type LockServiceOptions, serviceOptionNames } from './core/options.ts'
import { readOptions } from './core/read-options.ts'
import { memoryDriver } from './drivers/memory/index.ts'

/**
 * Locks as leases, on one namespace of one store; in-process unless it is given a driver. Make one for a process and
 * share it: its renewals and concurrent calls travel together.
 */
export class LockService extends CoreLockService {
  /** @throws InvalidOptionError */
  constructor(options: LockServiceOptions = {}) {
    super(withDriver(options))
  }
}

function withDriver(options: LockServiceOptions): LockServiceOptions {
  const { driver = memoryDriver(), ...rest } = readOptions('LockService', options, serviceOptionNames)
  return { ...rest, driver }
}
