import { AsyncLocalStorage } from 'node:async_hooks'
import type { Lease } from './lease.ts'

/** The leases of one call chain, the innermost first. */
interface Chain {
  readonly lease: Lease
  readonly outer: Chain | undefined
}

const chains = new AsyncLocalStorage<Chain | undefined>()

/** Runs a function inside a lease: {@link currentLease} and the check for re-entrance see it in the whole call chain. */
export function runInside<Result>(lease: Lease, fn: () => Result): Result {
  return chains.run({ lease, outer: chains.getStore() }, fn)
}

/** Runs a function that is none of this call chain's business: outside of every lease. */
export function runOutside<Result>(fn: () => Result): Result {
  return chains.run(undefined, fn)
}

/**
 * The innermost lease that this call chain runs under, or `undefined`. Set by `runExclusive`, `runExclusively` and
 * `exclusive`, for everything that they call, also asynchronously; a lease that has ended is passed over.
 */
export function currentLease(): Lease | undefined {
  return heldInChain(() => true)
}

/** The innermost held lease of this call chain that matches. Detached work that outlives its lease sees none. */
export function heldInChain(matches: (lease: Lease) => boolean): Lease | undefined {
  for (let chain = chains.getStore(); chain !== undefined; chain = chain.outer) {
    if (matches(chain.lease) && chain.lease.isHeld()) return chain.lease
  }
  return undefined
}
