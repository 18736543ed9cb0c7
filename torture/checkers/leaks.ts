import type { Evidence, Violation } from './checker.ts'

/**
 * On a machine with many more processes than processors the end of one takes seconds. What leaks keeps a process for ever,
 * or for as long as a timer of ours may run.
 *
 * postgres.js has a timer for its next try to connect, up to 20 s ahead, which the end of the client does not cancel.
 */
function endsWithinMs(client: string | undefined): number {
  return client === 'postgres.js by application' ? 25_000 : 8_000
}

/** G9: a process whose service was closed ends by itself, at once and well; no promise rejects unhandled, ever. */
export function leaks({ history }: Evidence): readonly Violation[] {
  const found: Violation[] = history
    .all('unhandled')
    .map(({ by, error, at }) => ({ checker: 'leaks', what: `${by}: unhandled: ${error}`, at }))
  // One that was told to end while it was being started ends by the signal.
  const lingering = new Map(
    history
      .all('lingers')
      .map(({ by, busy, resources }) => [by, `; it had ${resources.join(', ')}, and was ${busy}`]),
  )
  const clients = new Map(history.all('begun').map(({ by, client }) => [by, client]))
  for (const { worker, how, cause, tookMs, at } of history.all('ended')) {
    if (cause === 'nobody') {
      found.push({ checker: 'leaks', what: `${worker} ended (${how}), and nobody had asked`, at })
    } else if (
      cause === 'asked' &&
      clients.has(worker) &&
      (how !== '0' || tookMs > endsWithinMs(clients.get(worker)))
    ) {
      found.push({
        checker: 'leaks',
        what: `${worker}: after its close it took ${tookMs.toFixed(0)} ms to end (${how})${lingering.get(worker) ?? ''}`,
        at,
      })
    }
  }
  return found
}
