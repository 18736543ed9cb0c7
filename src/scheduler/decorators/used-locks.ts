import { DriverMissingError } from '../../core/errors.ts'
import { contextOf, type LockService } from '../../core/lock-service.ts'
import { shownKey } from './method-target.ts'

const used = new WeakMap<object, LockService>()

/**
 * Tells the `@Exclusive` methods of an instance where to lock. A class tells its static methods, a prototype all
 * instances; what an instance was told itself comes first.
 *
 * @throws InvalidOptionError
 */
export function useLocks(instance: object, locks: LockService): void {
  contextOf(locks)
  used.set(instance, locks)
}

/** @throws DriverMissingError if nobody told */
export function locksOf(instance: unknown, method: string | symbol): LockService {
  let each = instance
  while ((typeof each === 'object' && each !== null) || typeof each === 'function') {
    const locks = used.get(each)
    if (locks !== undefined) return locks
    each = Object.getPrototypeOf(each)
  }
  throw new DriverMissingError(
    `@Exclusive on ${shownKey(method)} does not know where to lock. Call useLocks(instance, locks) once the instance is made, or give @Exclusive the option locks.`,
  )
}
