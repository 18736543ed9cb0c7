import { currentLease, systemClock } from 'leasehold'
import { Deadline } from '../../../src/core/deadline.ts'
import { LockService } from '../../../src/core/lock-service.ts'
import { World } from '../world.ts'

/** What a check tries: the real core, or one in which a bug was planted. */
export interface CoreUnderTrial {
  readonly LockService: typeof LockService
  readonly Deadline: typeof Deadline
  readonly systemClock: typeof systemClock
  readonly currentLease: typeof currentLease
}

export const realCore: CoreUnderTrial = { LockService, Deadline, systemClock, currentLease }

/** One sentence about the core, and how to find out whether it holds: rejects with an assertion error if not. */
export interface Check {
  readonly sentence: string
  run(core: CoreUnderTrial): Promise<void>
}

/** A check that plays in a world of its own, whose end is part of the check. */
export function check(sentence: string, play: (world: World, core: CoreUnderTrial) => Promise<void>): Check {
  return {
    sentence,
    run: async (core) => {
      const world = new World({}, core.LockService)
      try {
        await play(world, core)
      } catch (error) {
        await world.end().catch(() => {})
        throw error
      }
      await world.end()
    },
  }
}
