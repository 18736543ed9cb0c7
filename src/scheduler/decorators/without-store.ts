import { resolveLockServiceOptions, type ResolvedLockServiceOptions } from '../../core/options.ts'
import { StoreUnusableError } from '../../core/errors.ts'

/** What options are checked against where a class is defined: there is no store yet. */
export const withoutStore: ResolvedLockServiceOptions = resolveLockServiceOptions({
  driver: {
    name: 'none',
    abilities: { push: false, clock: 'host', reach: 'process', minTtlMs: 1, maxBatch: 1 },
    open() {
      throw new StoreUnusableError('Options are only checked here; nothing is opened.')
    },
  },
})
