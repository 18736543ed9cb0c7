import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ClaimAnswer, ClaimRequest } from 'leasehold/driver'
import { steadyPace } from '../../simulator/checkers/steady-pace.ts'
import type { PromiseName } from '../../simulator/checkers/violation.ts'
import { drawPlan } from '../../simulator/draw-plan.ts'
import { History } from '../../simulator/history.ts'
import { shrink } from '../../simulator/shrink.ts'
import type { SystemUnderTrial } from '../../simulator/simulate.ts'
import { type Trial, tryPlan } from '../../simulator/trial.ts'
import { Claimer } from '../../src/scheduler/claimer.ts'
import { Overlaps } from '../../src/scheduler/overlaps.ts'
import { Run, type StopOrder } from '../../src/scheduler/run.ts'
import { leaseBugs } from '../contract/planted/lease-bugs.ts'
import { operatorBugs } from '../contract/planted/operator-bugs.ts'
import { taskBugs } from '../contract/planted/task-bugs.ts'
import { bugs as coreBugs } from '../core/planted/bugs.ts'
import { coreWith, uproot } from '../core/planted/plant.ts'

/*
 * The bugs that are planted for the contract suite and for the tests of the core, in simulated fleets: for each promise
 * at least one that turns its checker red.
 */

afterEach(uproot)

const storeBugs = [...leaseBugs, ...operatorBugs, ...taskBugs]

function withStoreBug(id: string): SystemUnderTrial {
  const bug = storeBugs.find((one) => one.id === id)
  if (bug === undefined) throw new Error(`There is no such bug: ${id}.`)
  return { plant: bug.plant }
}

async function withCoreBug(name: string): Promise<SystemUnderTrial> {
  const bug = coreBugs.find((one) => one.name === name)
  if (bug === undefined) throw new Error(`There is no such bug: ${name}.`)
  const { LockService } = await coreWith(bug)
  // Of the same loading, or it would not know the service.
  const { TaskScheduler } = await import('../../src/scheduler/task-scheduler.ts')
  const { ScheduledTaskStore } = await import('../../src/scheduler/scheduled-task-store.ts')
  return { classes: { LockService, TaskScheduler, ScheduledTaskStore } }
}

/** The first run that breaks the promise. */
async function firstThatBreaks(promise: PromiseName, system: SystemUnderTrial): Promise<Trial | null> {
  for (let seed = 1; seed <= 60; seed++) {
    const trial = await tryPlan(drawPlan(seed), system)
    if (trial.violations.some((violation) => violation.promise === promise)) return trial
  }
  return null
}

describe('a bug of the store turns a checker red:', () => {
  it.each([
    ['G1', 'grant-while-held'],
    ['G1', 'revoke-frees-at-once'],
    ['G1', 'refresh-shortens'],
    ['G2', 'fence-loses-digits'],
    ['G2', 'fence-starts-over-after-purge'],
    ['G4', 'refresh-without-token'],
    ['G4', 'expiry-on-the-caller’s-clock'],
    ['G5', 'mark-removed-on-completion'],
    ['G5', 'mark-in-the-future'],
    ['G6', 'mark-removed-on-completion'],
    ['G8', 'release-without-token'],
  ] as const)('%s %s', async (promise, id) => {
    expect(await firstThatBreaks(promise, withStoreBug(id))).not.toBeNull()
  })
})

describe('a bug of the core turns a checker red:', () => {
  it.each([
    ['G1', 'the deadline is counted from the answer'],
    ['G3', 'the deadline is counted from the answer'],
    ['G3', 'only a renewal tells of a loss'],
    ['G3', 'an answer after the loss brings the lease back'],
    ['G3', 'the signal is a stock one'],
    ['G7', 'busy is taken for held'],
    ['G7', 'a store that is down is taken for a key that is held'],
    ['G8', 'a release throws where the store does not answer'],
    ['G9', 'what has ended is not forgotten'],
  ] as const)('%s %s', async (promise, name) => {
    expect(await firstThatBreaks(promise, await withCoreBug(name))).not.toBeNull()
  })
})

describe('a reason that is not the true one turns a checker red:', () => {
  it.each(['late', 'paused', 'overlap'])('%s', async (reason) => {
    const system = withClaims((claim) => ({ ...claim, decide: 'miss', reason }))
    const broken = await violationsOf('G6', system)
    expect(broken.filter((what) => what.endsWith(`is skipped: ${reason}, which is not so.`))).not.toEqual([])
  })

  it('down', async () => {
    // Until the next one comes due, and so for ever.
    const broken = await violationsOf(
      'G6',
      withClaims(() => 'busy'),
    )
    expect(broken.filter((what) => /is missed: down, and n\d\.\d was there/.test(what))).not.toEqual([])
  })
})

/** A store that does something else with the claims of every third slot. */
function withClaims(change: (claim: ClaimRequest) => ClaimRequest | 'busy'): SystemUnderTrial {
  const isThird = ({ slot, task }: ClaimRequest): boolean => task === 'tick' && (slot / 500) % 3 === 0
  return {
    plant: ({ tasks }) => ({
      tasks: {
        claim: async (requests, call) => {
          const changed = requests.map((claim) => (isThird(claim) ? change(claim) : claim))
          const sent = changed.filter((claim) => claim !== 'busy')
          const answers = [...(await tasks.claim(sent, call))]
          return changed.map((claim) =>
            claim === 'busy' ? { outcome: 'busy' } : (answers.shift() as ClaimAnswer),
          )
        },
      },
    }),
  }
}

describe('a bug about the policies of a task or its manual runs turns a checker red:', () => {
  afterEach(() => vi.restoreAllMocks())

  it('G5: a claim leaves the request that it carries out', async () => {
    const system = withChangedClaims((claim) =>
      claim.orders ? { ...claim, orders: { ...claim.orders, after: claim.orders.before } } : claim,
    )
    await expectFinding('G5', system, /was run twice for one request/)
  })

  it('G6: a request drops those that wait', async () => {
    const system: SystemUnderTrial = {
      plant: ({ tasks }) => ({
        tasks: {
          control: (request, call) => {
            if (!request.orders) return tasks.control(request, call)
            const last = (JSON.parse(request.orders.after) as unknown[]).slice(-1)
            const orders = { ...request.orders, after: JSON.stringify(last) }
            return tasks.control({ ...request, orders }, call)
          },
        },
      }),
    }
    await expectFinding('G6', system, /was taken, and ran 0 times|is to run .* and ran/)
  })

  it('G6: the schedule of a paused task goes on', async () => {
    const system: SystemUnderTrial = {
      plant: ({ tasks, table }) => ({
        tasks: {
          claim: (requests, call) => {
            for (const { task } of requests) {
              const row = table.tasks.get(task)
              if (row !== undefined) table.tasks.set(task, { ...row, pausedBy: null })
            }
            return tasks.claim(requests, call)
          },
        },
      }),
    }
    await expectFinding('G6', system, /runs, and the task is paused/)
  })

  it('G6: whatever was left out is said to have met another run', async () => {
    const { ask } = Claimer.prototype
    vi.spyOn(Claimer.prototype, 'ask').mockImplementation(function (this: Claimer, claim) {
      return ask.call(this, claim.orders === undefined ? { ...claim, gap: 'overlap' } : claim)
    })
    await expectFinding('G6', {}, /is missed: overlap, and nothing ran/)
  })

  it('G6: the history says of no slot that was left out that it met another run', async () => {
    vi.spyOn(Overlaps.prototype, 'has').mockReturnValue(false)
    await expectFinding('G6', {}, /is missed: down, and another run was in its way/)
  })

  it('G6: a slot that is too late runs', async () => {
    const { ask } = Claimer.prototype
    vi.spyOn(Claimer.prototype, 'ask').mockImplementation(function (this: Claimer, claim) {
      return ask.call(this, claim.reason === 'late' ? { ...claim, decide: 'run' } : claim)
    })
    await expectFinding('G6', {}, /runs, .* ms late/)
  })

  it('G6: missed slots that are to be caught up are left out', async () => {
    const system: SystemUnderTrial = {
      plant: ({ tasks, now }) => ({
        tasks: {
          claim: (claims, call) => {
            const newest = claims.map((claim) => {
              const { catchUp, everyMs } = JSON.parse(claim.definition) as {
                catchUp: string
                everyMs: number
              }
              if (claim.orders || catchUp !== 'all') return claim
              return { ...claim, slot: Math.max(claim.slot, Math.floor(now() / everyMs) * everyMs) }
            })
            return tasks.claim(newest, call)
          },
        },
      }),
    }
    await expectFinding('G6', system, /is left out, and is to be caught up/)
  })

  it('G7: a fire is told that its slot was decided, and it was not', async () => {
    const system: SystemUnderTrial = {
      plant: ({ tasks }) => ({
        tasks: {
          claim: async (requests, call) => {
            const answers = await tasks.claim(requests, call)
            return answers.map((answer, index) =>
              requests[index]?.task === 'fired' && answer.outcome === 'early'
                ? { ...answer, outcome: 'decided' }
                : answer,
            )
          },
        },
      }),
    }
    await expectFinding('G7', system, /skipped, and the store has not decided it/)
  })

  it('G7: a manual run is told apart by the claim that was answered', async () => {
    const { ask } = Claimer.prototype
    vi.spyOn(Claimer.prototype, 'ask').mockImplementation(async function (this: Claimer, claim) {
      const claimed = await ask.call(this, claim)
      return claimed && { ...claimed, isManual: claim.orders !== undefined }
    })
    await expectFinding('G7', {}, /for a slot|for a manual run/, 300)
  })

  it.each([
    ['G6', 'timeout', /is renewed past its timeout/],
    ['G6', 'cancelled', /in the way of a newer slot/],
    ['G3', 'lock', /lost the lock .* was not told/],
  ] as const)('%s: a run does not hear that it is to stop: %s', async (promise, kind, finding) => {
    const { stop } = Run.prototype
    vi.spyOn(Run.prototype, 'stop').mockImplementation(function (this: Run, order: StopOrder) {
      if (order.kind !== kind) stop.call(this, order)
    })
    await expectFinding(promise, {}, finding, 300)
  })

  it('G9: a process asks the store all the time', () => {
    let at = 0
    const history = new History(() => at)
    const call = { kind: 'call', by: 'n1.1', verb: 'claim', what: 'tick', fault: null } as const
    for (let number = 1; number <= 240; number++, at += 5) history.add({ ...call, number })
    expect(steadyPace(history.entries)).toEqual([])
    for (let number = 241; number <= 500; number++, at += 3) history.add({ ...call, number })
    expect(steadyPace(history.entries).map(({ promise }) => promise)).toEqual(['G9'])
  })
})

function withChangedClaims(change: (claim: ClaimRequest) => ClaimRequest): SystemUnderTrial {
  return {
    plant: ({ tasks }) => ({ tasks: { claim: (claims, call) => tasks.claim(claims.map(change), call) } }),
  }
}

async function expectFinding(
  promise: PromiseName,
  system: SystemUnderTrial,
  finding: RegExp,
  seeds = 150,
): Promise<void> {
  for (let seed = 1; seed <= seeds; seed++) {
    const plan = drawPlan(seed)
    if (!plan.deeds.some(({ kind }) => kind === 'trigger' || kind === 'backfill')) continue
    const { violations } = await tryPlan(plan, system)
    if (violations.some((found) => found.promise === promise && finding.test(found.what))) return
  }
  expect.fail(`No run of ${seeds} shows it.`)
}

/** What some runs show to be broken of a promise. */
async function violationsOf(promise: PromiseName, system: SystemUnderTrial): Promise<string[]> {
  const found: string[] = []
  for (let seed = 1; seed <= 20; seed++) {
    const { violations } = await tryPlan(drawPlan(seed), system)
    found.push(...violations.filter((one) => one.promise === promise).map(({ what }) => what))
  }
  return found
}

it('a failing run is cut down to what it takes', async () => {
  const system = withStoreBug('grant-while-held')
  const trial = (await firstThatBreaks('G1', system)) as Trial
  const { plan, violations } = await shrink(trial, system)
  expect(violations.map(({ promise }) => promise)).toContain('G1')
  expect(plan.deeds.length).toBeLessThanOrEqual(3)
  expect(plan.faults).toEqual([])
  expect(plan.tasks).toEqual([])
})

it('a named exception excuses nothing but itself', async () => {
  const system = withStoreBug('grant-while-held')
  for (let seed = 1, found = 0; found < 3; seed++) {
    const plan = drawPlan(seed)
    if (!plan.deeds.some(({ kind }) => kind === 'exception')) continue
    const { violations } = await tryPlan(plan, system)
    if (violations.some(({ promise }) => promise === 'G1')) found++
    expect(seed, 'runs with an exception, and a bug besides it').toBeLessThan(200)
  }
})
