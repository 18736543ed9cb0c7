import { type LockService, StoreUnavailableError } from '../index.ts'

/** What a health indicator of @nestjs/terminus answers. */
export type LeaseholdHealth<Key extends string> = Record<
  Key,
  { readonly status: 'up' | 'down'; readonly responseMs?: number; readonly message?: string }
>

/**
 * Whether the store answers, for the health checks of @nestjs/terminus; of the default store.
 *
 * @example
 * this.health.check([() => this.leasehold.isHealthy('locks')])
 */
export class LeaseholdHealthIndicator {
  readonly #locks: LockService

  constructor(locks: LockService) {
    this.#locks = locks
  }

  /** Asks the store, for as long as one request of the service may take. Never rejects. */
  async isHealthy<const Key extends string = 'leasehold'>(key?: Key): Promise<LeaseholdHealth<Key>> {
    const name = key ?? ('leasehold' as Key)
    const startedAt = performance.now()
    const health = await this.#locks.peek('leasehold:health').then(
      () => ({ status: 'up' as const, responseMs: Math.ceil(performance.now() - startedAt) }),
      (error: unknown) => ({ status: 'down' as const, message: messageOf(error) }),
    )
    return { [name]: health } as LeaseholdHealth<Key>
  }
}

/** What a client adds, such as addresses, is for the log and not for whoever may ask for the health. */
function messageOf(error: unknown): string {
  return error instanceof StoreUnavailableError ? 'The store does not answer.' : 'The store cannot serve.'
}
