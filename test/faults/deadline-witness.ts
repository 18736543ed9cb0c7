import { type Lease, onEvent } from 'leasehold'
import { onTestFinished } from 'vitest'

/**
 * Resolves at the deadline of a lease, by a timer as an application might have set it: with what the abort listeners
 * had been called with by then. Never asks the lease itself, which would declare the loss.
 */
export function witnessDeadline(lease: Lease): Promise<readonly string[]> {
  const heard: string[] = []
  lease.signal.addEventListener('abort', () => heard.push((lease.signal.reason as { reason: string }).reason))
  return new Promise((resolve) => {
    let timer: NodeJS.Timeout | undefined
    const waitUntil = (deadline: number): void => {
      clearTimeout(timer)
      // A timer that was set in a long turn rings early by as much.
      const look = (): void => (performance.now() < deadline ? waitUntil(deadline) : resolve(heard))
      timer = setTimeout(look, deadline - performance.now())
    }
    waitUntil(performance.now() + lease.remainingMs)
    const unsubscribe = onEvent('leasehold:refresh', ({ fence, remainingMs }) => {
      if (fence === lease.fence) waitUntil(performance.now() + remainingMs)
    })
    onTestFinished(unsubscribe)
  })
}

/** The losses that were told on the event channel, from now until the test ends. */
export function recordLosses(): readonly { readonly key: string; readonly reason: string }[] {
  const losses: { key: string; reason: string }[] = []
  onTestFinished(onEvent('leasehold:lost', ({ key, reason }) => losses.push({ key, reason })))
  return losses
}
