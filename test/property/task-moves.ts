import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect } from 'vitest'
import type { ClaimRequest, DriverSession } from 'leasehold/driver'
import type { ContractStore, RawStore } from 'leasehold/testing'
import { claimOf, completionOf, TaskActor } from '../../src/testing/contract/task-actor.ts'
import { newToken } from '../../src/testing/contract/tokens.ts'
import { briefMs, longMs } from './lock-world.ts'
import { move, type Move } from './move.ts'
import type { ModelRun, ModelTask, TaskModel } from './task-model.ts'

export const tasks = ['tick', 'tâche 🕐'] as const
const schedules = ['every-a', 'every-b', 'every-c'] as const

/** Two nodes on connections of their own. */
export class TaskWorld {
  readonly nodes: readonly [TaskActor, TaskActor]
  readonly minTtlMs: number
  readonly #sessions: readonly DriverSession[]
  readonly #namespace = `model-${randomBytes(8).toString('hex')}`
  readonly #raw: RawStore | undefined

  constructor({ first, second, raw }: ContractStore) {
    const sessions = [first.open(this.#namespace), second.open(this.#namespace)] as const
    this.#sessions = sessions
    this.#raw = raw
    this.nodes = [new TaskActor(sessions[0].tasks), new TaskActor(sessions[1].tasks)]
    this.minTtlMs = Math.max(first.abilities.minTtlMs, 20)
  }

  node(index: number): TaskActor {
    return this.nodes[index] as TaskActor
  }

  /** Most of what there is to do needs a task that is known. */
  async register(model: TaskModel, task: string): Promise<void> {
    const { mark } = await this.node(0).register(task, { fingerprint: schedules[0] })
    model.create(task, schedules[0], mark)
  }

  async forget(task: string): Promise<void> {
    await this.#raw?.forgetTask?.(this.#namespace, task)
  }

  async close(): Promise<void> {
    await Promise.all(this.#sessions.map((session) => session.close()))
  }
}

interface Policies {
  readonly overlap: 'skip' | 'queue'
  readonly onCrash: 'skip' | 'retry'
  readonly maxAttempts: number
  readonly decide: 'run' | 'miss'
  readonly isBrief: boolean
  /** A brief run is asked to stop before it lapses. */
  readonly isCancelled: boolean
}

const node = fc.nat(1)
const task = fc.constantFrom(...tasks)
const run = fc.nat(5)
const policies = {
  overlap: fc.constantFrom<'skip' | 'queue'>('skip', 'queue'),
  onCrash: fc.constantFrom<'skip' | 'retry'>('skip', 'retry'),
  maxAttempts: fc.integer({ min: 1, max: 3 }),
  decide: fc.constantFrom<'run' | 'miss'>('run', 'run', 'run', 'run', 'miss'),
  isBrief: fc.boolean(),
  isCancelled: fc.nat(3).map((one) => one === 0),
}

const isKnown = (model: TaskModel, choices: { readonly task: string }): boolean =>
  model.tasks.has(choices.task)
const hasRun = (model: TaskModel, choices: { readonly run: number }): boolean =>
  model.runs.length > choices.run
const chosen = (model: TaskModel, back: number): ModelRun => model.runs.at(-1 - back) as ModelRun

export const taskMoves: readonly fc.Arbitrary<Move<TaskModel, TaskWorld>>[] = [
  move(
    'register',
    { node, task, schedule: fc.constantFrom(...schedules), starting: fc.boolean() },
    async (model, world, { node: by, task: name, schedule: fingerprint, starting }) => {
      const answer = await world.node(by).register(name, { fingerprint, starting })
      expect(answer.outcome).toBe(model.register(name, fingerprint, starting, answer.now))
      expect(answer.mark).toBe(model.tasks.get(name)?.mark)
    },
  ),
  ...often(
    5,
    move(
      'claim',
      { node, task, ahead: fc.integer({ min: 1, max: 3 }), ...policies },
      async (model, world, { node: by, task: name, ahead, ...wish }) => {
        const { mark } = model.tasks.get(name) as ModelTask
        await world.node(by).waitFor(mark + ahead)
        await claim(model, world, { by, slot: mark + ahead, after: mark, name, ...wish })
      },
      isKnown,
    ),
  ),
  move(
    'claim what is not to be had',
    {
      node,
      task,
      how: fc.constantFrom('early', 'decided', 'behind', 'superseded', 'unregistered'),
      ...policies,
    },
    claimInVain,
  ),
  move(
    'a claim comes twice',
    { node, run, ...policies },
    async (model, world, { node: by, run: back, ...wish }) => {
      const { task: name, token } = chosen(model, back)
      const { mark } = model.tasks.get(name) as ModelTask
      await world.node(by).waitFor(mark + 1)
      await claim(model, world, { by, slot: mark + 1, after: mark, name, token, ...wish, isBrief: false })
    },
    // What a token is granted that has ended is nobody's run.
    (model, choices) =>
      hasRun(model, choices) &&
      model.tasks.get(chosen(model, choices.run).task)?.run === chosen(model, choices.run),
  ),
  move(
    'renew',
    { node, run, isStranger: fc.boolean() },
    async (model, world, { node: by, run: back, isStranger }) => {
      const of = chosen(model, back)
      const token = isStranger ? 'somebody-else' : of.token
      const answer = await world.node(by).refresh({ task: of.task, token }, longMs)
      const isHeld = !isStranger && model.isUnderWay(of)
      expect(answer.outcome).toBe(isHeld ? 'held' : 'lost')
      if (answer.outcome === 'held') expect(answer.stop !== null).toBe(of.isToStop)
    },
    hasRun,
  ),
  ...often(
    2,
    move(
      'complete',
      {
        node,
        run,
        outcome: fc.constantFrom<'succeeded' | 'failed' | 'abandoned'>('succeeded', 'failed', 'abandoned'),
        isWrong: fc.nat(9).map((one) => one === 0),
      },
      async (model, world, { node: by, run: back, outcome, isWrong }) => {
        const of = chosen(model, back)
        const request = completionOf({ ...of, fence: of.fence + (isWrong ? 1 : 0) }, { outcome })
        expect(await world.node(by).complete(request, request)).toBe(model.complete(request))
      },
      hasRun,
    ),
  ),
  move(
    'control',
    {
      node,
      task,
      kind: fc.constantFrom<'pause' | 'resume' | 'cancel'>('pause', 'resume', 'cancel'),
      id: fc.nat(30),
    },
    control,
  ),
  move(
    'delete the record',
    { task },
    async (model, world, { task: name }) => {
      await world.forget(name)
      model.tasks.delete(name)
      // A record that is made anew in the same millisecond would be that of the same instant.
      const { now } = await world.node(0).poll()
      await world.node(0).waitFor(now + 1)
    },
    isKnown,
  ),
  move('look', { node, task }, compare),
]

/** Drawn so many times as often as others. */
function often(
  times: number,
  one: fc.Arbitrary<Move<TaskModel, TaskWorld>>,
): fc.Arbitrary<Move<TaskModel, TaskWorld>>[] {
  return Array.from({ length: times }, () => one)
}

interface Attempted extends Policies {
  readonly by: number
  readonly name: string
  readonly slot: number
  readonly after: number
  readonly token?: string
}

async function claim(model: TaskModel, world: TaskWorld, attempted: Attempted): Promise<void> {
  const { by, name, isBrief, isCancelled, ...wish } = attempted
  const { fingerprint } = model.tasks.get(name) as ModelTask
  const request: ClaimRequest = claimOf(name, {
    token: newToken(),
    ...wish,
    fingerprint,
    ttlMs: isBrief ? (isCancelled ? briefMs : world.minTtlMs) : longMs,
    reason: 'late',
  })
  const before = (model.tasks.get(name) as ModelTask).run
  const isAgain = before?.token === request.token && !before.hasLapsed
  const expected = model.claim(request, false)
  const answer = await world.node(by).claim(name, request)
  expect(answer.outcome).toBe(expected)
  if (answer.outcome !== 'granted' && answer.outcome !== 'takeover') {
    expect(answer.mark).toBe(model.tasks.get(name)?.mark)
    return
  }
  const { slot, attempt, fence } = answer
  if (isAgain)
    return expect({ slot, attempt, fence }).toEqual({
      slot: before.slot,
      attempt: before.attempt,
      fence: before.fence,
    })
  const begun: ModelRun = {
    task: name,
    slot,
    attempt,
    fence,
    token: request.token,
    hasLapsed: false,
    isToStop: false,
  }
  if (answer.outcome === 'granted') expect(slot).toBe(request.slot)
  model.begin(begun)
  if (!isBrief) return
  if (isCancelled) await cancel(model, world.node(by), begun)
  await world.node(by).waitForLapse(name)
  begun.hasLapsed = true
}

/** On a busy machine it may have lapsed before; then there is nothing to cancel. */
async function cancel(model: TaskModel, actor: TaskActor, of: ModelRun): Promise<void> {
  const requestId = `cancel ${of.fence}`
  const { outcome } = await actor.control(of.task, 'cancel', { requestId, fence: of.fence })
  if (outcome === 'idle') return
  expect(outcome).toBe('applied')
  of.isToStop = true
  model.version++
  model.requests.add(requestId)
}

async function claimInVain(
  model: TaskModel,
  world: TaskWorld,
  choices: { node: number; task: string; how: string } & Policies,
): Promise<void> {
  const { node: by, task: name, how, isBrief: _isBrief, isCancelled: _isCancelled, ...wish } = choices
  const known = model.tasks.get(name)
  if (known === undefined) {
    const fingerprint = schedules[0]
    const answer = await world.node(by).claim(name, { slot: 1, after: 0, fingerprint, ...wish })
    expect(answer.outcome).toBe('unregistered')
    return model.create(name, fingerprint, answer.mark)
  }
  const { mark, fingerprint } = known
  const slots: Record<string, [slot: number, after: number]> = {
    early: [mark + 24 * 3_600_000, mark],
    decided: [mark, mark - 1],
    behind: [mark + 1, mark - 1],
  }
  const [slot, after] = slots[how] ?? [mark + 1, mark]
  const other = how === 'superseded' ? 'never-registered' : fingerprint
  // Nothing of a run that lapsed is to be dealt with here.
  const request = claimOf(name, { slot, after, ...wish, fingerprint: other, maxAttempts: 1, reason: 'late' })
  if (how !== 'early' || slots[how] === undefined) await world.node(by).waitFor(mark + 1)
  if (how === 'unregistered') return
  const expected = how === 'superseded' ? 'superseded' : model.claim(request, how === 'early')
  const answer = await world.node(by).claim(name, request)
  expect(answer.outcome).toBe(expected)
}

async function control(
  model: TaskModel,
  world: TaskWorld,
  {
    node: by,
    task: name,
    kind,
    id,
  }: { node: number; task: string; kind: 'pause' | 'resume' | 'cancel'; id: number },
): Promise<void> {
  const requestId = `${name} ${kind} ${id}`
  const known = model.tasks.get(name)
  const { outcome } = await world.node(by).control(name, kind, { requestId })
  if (known === undefined) return expect(outcome).toBe('unregistered')
  if (model.requests.has(requestId)) return expect(['repeated', 'applied', 'idle']).toContain(outcome)
  const current = known.run
  if (kind === 'cancel' && (current === null || current.hasLapsed)) return expect(outcome).toBe('idle')
  expect(outcome).toBe('applied')
  model.requests.add(requestId)
  model.version++
  if (kind === 'cancel' && current !== null) current.isToStop = true
  else known.isPaused = kind === 'pause'
}

/** Record and log, as an operator sees them. */
async function compare(
  model: TaskModel,
  world: TaskWorld,
  { node: by, task: name }: { node: number; task: string },
): Promise<void> {
  const [record] = await world.node(by).inspectAll([name])
  const known = model.tasks.get(name)
  expect(record?.mark).toBe(known?.mark)
  expect(record?.paused).toBe(known?.isPaused)
  expect(record?.fingerprint).toBe(known?.fingerprint)
  expect(record?.running?.fence).toBe(known?.run?.fence)
  const rows = await world.node(by).log(name)
  const seen = rows.map(({ slot, attempt, state, fence, late }) => ({ slot, attempt, state, fence, late }))
  const modelled = model
    .rows(name)
    .toSorted((one, other) => other.slot - one.slot || other.attempt - one.attempt)
  expect(seen).toEqual(
    modelled.map(({ slot, attempt, state, fence, late }) => ({ slot, attempt, state, fence, late })),
  )
  expect((await world.node(by).poll()).version).toBe(model.version)
}

/** At the end of each history everything is looked at. */
export async function compareAll(model: TaskModel, world: TaskWorld): Promise<void> {
  for (const name of tasks) await compare(model, world, { node: 0, task: name })
}
