import type { TaskOptions } from 'leasehold'

/** The tasks of the fleet: each policy for crashes and catching up. */
export const taskPlans = {
  once: { cron: '* * * * * *', ttl: 600, onCrash: 'skip', maxLifetime: 2_000 },
  retried: { every: 700, ttl: 500, onCrash: 'retry', maxAttempts: 5, maxLifetime: 2_000 },
  prompt: { every: 500, ttl: 400, onCrash: 'skip', catchUp: 'none', startDeadline: 400, maxLifetime: 2_000 },
} as const satisfies Record<string, TaskOptions>
