import type { TaskOptions } from 'leasehold'

/** The tasks of the fleet: each policy for crashes and catching up. */
export const taskPlans = {
  once: { cron: '* * * * * *', ttl: 600, onCrash: 'skip', maxLifetime: 2_000 },
  retried: { every: 700, ttl: 500, onCrash: 'retry', maxAttempts: 5, maxLifetime: 2_000 },
  prompt: { every: 500, ttl: 400, onCrash: 'skip', catchUp: 'none', startDeadline: 400, maxLifetime: 2_000 },
} as const satisfies Record<string, TaskOptions>

/** A task of which half of the fleet runs another edition: each has a period of its own, and so slots of its own. */
export const editedTask = 'edited'

export function editedPlan(edition: number): TaskOptions & { readonly every: number } {
  return { every: 500 + edition, ttl: 500, onCrash: 'skip', maxLifetime: 2_000 }
}
