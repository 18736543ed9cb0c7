import type { Clock } from 'leasehold'
import type { ClaimAnswer, ClaimRequest, Driver, LockDriver, TaskDriver } from 'leasehold/driver'
import { methodsOf } from './death-wish.ts'
import type { UsedLocks } from './lock-work.ts'
import { plantedServices } from './planted-services.ts'
import { hostWall } from './skewed-clock.ts'

/** A way in which a driver, a core or an application is wrong, made around the right one. */
export interface PlantedBug {
  readonly what: string
  readonly driver?: (right: Driver, place: number) => Driver
  readonly clock?: (right: Clock) => Clock
  readonly locks?: (right: UsedLocks) => UsedLocks
  readonly atEnd?: () => void
}

/** Bugs of the workers, by name. Each has to turn at least one checker red. */
export const plantedBugs: Readonly<Record<string, PlantedBug>> = {
  ...plantedServices,
  'fence-from-the-client': {
    what: 'the fence is made of the clock of whoever asks, not by the store',
    driver: (right, place) =>
      around(right, (locks) => ({
        acquire: async (requests, call) => {
          const answers = await locks.acquire(requests, call)
          return answers.map((answer) =>
            answer.outcome === 'granted'
              ? { ...answer, fence: Math.floor((Date.now() + place * 5_000) * 1_000) }
              : answer,
          )
        },
      })),
  },
  'fence-loses-digits': {
    what: 'fences pass through a floating point text with seven digits less',
    driver: (right) =>
      around(right, (locks) => ({
        acquire: async (requests, call) => {
          const answers = await locks.acquire(requests, call)
          return answers.map((answer) =>
            answer.outcome === 'granted'
              ? { ...answer, fence: Math.floor(answer.fence / 1e7) * 1e7 }
              : answer,
          )
        },
      })),
  },
  'renewal-believed-unanswered': {
    what: 'a renewal that has no answer after a while counts as confirmed',
    driver: (right) =>
      around(right, (locks) => ({
        refresh: (requests, call) =>
          soon(locks.refresh(requests, call), () =>
            requests.map(({ ttlMs }) => ({ outcome: 'held' as const, remainingMs: ttlMs })),
          ),
      })),
  },
  'deadline-too-long': {
    what: 'a holder trusts its lease for half a ttl more than the store said',
    driver: (right) =>
      around(right, (locks) => ({
        acquire: async (requests, call) => {
          const answers = await locks.acquire(requests, call)
          return answers.map((answer) =>
            answer.outcome === 'granted' ? { ...answer, remainingMs: answer.remainingMs * 1.5 } : answer,
          )
        },
        refresh: async (requests, call) => {
          const answers = await locks.refresh(requests, call)
          return answers.map((answer) =>
            answer.outcome === 'held' ? { ...answer, remainingMs: answer.remainingMs * 1.5 } : answer,
          )
        },
      })),
  },
  'renewal-recreates': {
    what: 'a lost lease is silently taken again under the same token',
    driver: (right) =>
      around(right, (locks) => ({
        refresh: async (requests, call) => {
          const answers = await locks.refresh(requests, call)
          return answers.map((answer, index) =>
            answer.outcome === 'lost'
              ? { outcome: 'held' as const, remainingMs: requests[index]?.ttlMs ?? 0 }
              : answer,
          )
        },
      })),
  },
  'late-loss-signal': {
    what: 'timers of more than a few milliseconds come 300 ms late, the one of the deadline among them',
    clock: (right) => ({
      monotonic: () => right.monotonic(),
      wall: () => right.wall(),
      setTimer: (delayMs, callback, options) =>
        right.setTimer(delayMs > 20 ? delayMs + 300 : delayMs, callback, options),
    }),
  },
  'ttl-too-long': {
    what: 'the store is asked for twenty times the ttl: what the dead held stays closed',
    driver: (right) =>
      around(right, (locks) => ({
        acquire: (requests, call) =>
          locks.acquire(
            requests.map((request) => ({ ...request, ttlMs: request.ttlMs * 20 })),
            call,
          ),
      })),
  },
  'release-not-sent': {
    what: 'a release answers "released" and is not sent, and renewals ask for ten times the ttl',
    driver: (right) =>
      around(right, (locks) => ({
        release: async (requests) => requests.map(() => ({ outcome: 'released' as const })),
        acquire: (requests, call) =>
          locks.acquire(
            requests.map((request) => ({ ...request, ttlMs: request.ttlMs * 10 })),
            call,
          ),
      })),
  },
  'timer-left-behind': {
    what: 'a timer that keeps the process alive is left after the close',
    atEnd: () => void setInterval(() => {}, 1_000),
  },
  'rejection-unhandled': {
    what: 'a promise is rejected that nobody awaits',
    atEnd: () => void Promise.reject(new Error('planted')),
  },
  'decided-is-granted': {
    what: 'a node that comes late for a slot runs it again',
    driver: (right) =>
      around(right, undefined, (tasks) => ({
        claim: async (requests, call) =>
          grantedWhere(
            requests,
            await tasks.claim(requests, call),
            ({ outcome }) => outcome === 'decided' || outcome === 'behind',
          ),
      })),
  },
  'early-is-granted': {
    what: 'a node that is fast runs slots before they are due',
    driver: (right) =>
      around(right, undefined, (tasks) => ({
        register: async (requests, call) => {
          const answers = await tasks.register(requests, call)
          return answers.map((answer) => ('now' in answer ? { ...answer, now: answer.now + 250 } : answer))
        },
        poll: async (call) => {
          const answer = await tasks.poll(call)
          return { ...answer, now: answer.now + 250 }
        },
        claim: async (requests, call) =>
          grantedWhere(requests, await tasks.claim(requests, call), ({ outcome }) => outcome === 'early'),
      })),
  },
  'always-retried': {
    what: 'a crashed run of an at-most-once task is run again',
    driver: (right) =>
      around(right, undefined, (tasks) => ({
        claim: (requests, call) =>
          tasks.claim(
            requests.map((request) => ({ ...request, onCrash: 'retry', maxAttempts: 5 })),
            call,
          ),
      })),
  },
  'never-retried': {
    what: 'a crashed run of an at-least-once task is not run again',
    driver: (right) =>
      around(right, undefined, (tasks) => ({
        claim: (requests, call) =>
          tasks.claim(
            requests.map((request) => ({ ...request, onCrash: 'skip', maxAttempts: 1 })),
            call,
          ),
      })),
  },
  'run-believed-unanswered': {
    what: 'the renewal of a run that has no answer after a while, or is refused, counts as confirmed',
    driver: (right) =>
      around(right, undefined, (tasks) => ({
        refresh: async (requests, call) => {
          const held = (ttlMs: number) => ({ outcome: 'held' as const, remainingMs: ttlMs, stop: null })
          const answers = await soon(tasks.refresh(requests, call), () =>
            requests.map(({ ttlMs }) => held(ttlMs)),
          )
          return answers.map((answer, index) =>
            answer.outcome === 'lost' ? held(requests[index]?.ttlMs ?? 0) : answer,
          )
        },
      })),
  },
  'some-renewals-forgotten': {
    what: 'of a large batch of renewals only the first ninety are made',
    driver: (right) =>
      around(right, (locks) => ({
        refresh: async (requests, call) => {
          const made = await locks.refresh(requests.slice(0, 90), call)
          return requests.map(
            (_, index) => made[index] ?? { outcome: 'lost' as const, reason: 'gone' as const },
          )
        },
      })),
  },
  'old-schedule-returns': {
    what: 'a node that restarts brings its schedule back, although the fleet has a newer one',
    driver: (right) => {
      const own = `#${hostWall()}`
      const marked = <Request extends { readonly fingerprint: string }>(requests: readonly Request[]) =>
        requests.map((request) => ({ ...request, fingerprint: request.fingerprint + own }))
      return around(right, undefined, (tasks) => ({
        register: (requests, call) => tasks.register(marked(requests), call),
        claim: (requests, call) => tasks.claim(marked(requests), call),
      }))
    },
  },
  'edit-fires-the-past': {
    what: 'a schedule that is edited fires what was due under it before the edit',
    driver: (right) => {
      const edited = new Set<string>()
      return around(right, undefined, (tasks) => ({
        register: async (requests, call) => {
          const answers = await tasks.register(requests, call)
          return answers.map((answer, index) => {
            if (answer.outcome !== 'raised') return answer
            edited.add(requests[index]?.task ?? '')
            return { ...answer, mark: answer.mark - 3_000 }
          })
        },
        claim: async (requests, call) =>
          grantedWhere(
            requests,
            await tasks.claim(requests, call),
            ({ outcome }, { task }) => edited.delete(task) && outcome === 'decided',
          ),
      }))
    },
  },
  'missed-for-no-reason': {
    what: 'now and then a node that is there says that nobody was',
    driver: (right) =>
      around(right, undefined, (tasks) => ({
        claim: (requests, call) =>
          tasks.claim(
            requests.map((request) =>
              request.slot % 3 === 0 && request.slot > request.after
                ? { ...request, decide: 'miss' as const, reason: 'down' }
                : request,
            ),
            call,
          ),
      })),
  },
  'completion-not-sent': {
    what: 'outcomes are not recorded in the store',
    driver: (right) =>
      around(right, undefined, () => ({
        complete: async (requests) =>
          requests.map(() => ({ outcome: 'completed' as const, now: hostWall() })),
      })),
  },
}

/** Bugs of what stands beside the workers: the resource, and the reading of the run log. */
const outerPlants = ['resource-without-fences', 'run-log-with-holes', 'edits-not-logged'] as const

export const plantNames: readonly string[] = [...Object.keys(plantedBugs), ...outerPlants]

/** The answer, or what is made up if it does not come soon, or not at all. */
function soon<Answers>(asked: Promise<Answers>, madeUp: () => Answers): Promise<Answers> {
  return new Promise((resolve) => {
    const giveUp = (): void => resolve(madeUp())
    const timer = setTimeout(giveUp, 100)
    asked.then(resolve, giveUp).finally(() => clearTimeout(timer))
  })
}

function around(
  right: Driver,
  wrongLocks?: (locks: LockDriver) => Partial<LockDriver>,
  wrongTasks?: (tasks: TaskDriver) => Partial<TaskDriver>,
): Driver {
  return {
    ...right,
    open: (namespace) => {
      const session = right.open(namespace)
      return {
        locks: { ...methodsOf(session.locks), ...wrongLocks?.(session.locks) },
        tasks: { ...methodsOf(session.tasks), ...wrongTasks?.(session.tasks) },
        listen: session.listen?.bind(session),
        close: () => session.close(),
      }
    },
  }
}

/** The answers, with a run that nobody granted in the place of some. */
function grantedWhere(
  requests: readonly ClaimRequest[],
  answers: readonly ClaimAnswer[],
  isPlanted: (answer: ClaimAnswer, request: ClaimRequest) => boolean,
): ClaimAnswer[] {
  return answers.map((answer, index) => {
    const request = requests[index]
    if (request === undefined || !isPlanted(answer, request) || !('mark' in answer)) return answer
    const { slot } = request
    const fence = hostWall() * 1_000
    return { ...answer, outcome: 'granted', slot, attempt: 1, fence, remainingMs: 500 }
  })
}
