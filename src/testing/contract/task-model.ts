import assert from 'node:assert/strict'
import type { ClaimRequest, RunRecord } from '../../driver/index.ts'
import {
  claimSlot,
  completeRun,
  controlTask,
  describeTask,
  type LogChange,
  refreshRun,
  registerTask,
  type TaskRow,
  type TaskStep,
} from '../../driver/task-rules.ts'
import type { ContractBehaviour } from '../contract-subject.ts'
import { type SeededRandom, seededRandom } from '../seeded-random.ts'
import { group, longMs, type Stage } from './stage.ts'
import { claimOf, completionOf, registrationOf, type Run } from './task-actor.ts'
import { newToken } from './tokens.ts'

/*
 * Long random histories of calls about a few tasks, answered by the driver and by the rules written down in TypeScript.
 * The rules are told the store's time as the driver answered it.
 */
export function taskModel(seeds: readonly number[]): readonly ContractBehaviour[] {
  return group('tasks: random histories', (it) => {
    for (const seed of seeds) {
      it(`every answer, record and log row is the one that the rules give (seed ${seed})`, async (stage) => {
        await playRandomHistory(stage, seededRandom(seed), 120)
      })
    }
  })
}

const names = ['one', 'two']
const fingerprints = ['f1', 'f2', 'f3']

async function playRandomHistory(stage: Stage, random: SeededRandom, moves: number): Promise<void> {
  const model = new TaskModel()
  const runs: Run[] = [
    { task: 'one', slot: 1, attempt: 1, fence: 1, token: newToken(), remainingMs: 0, mark: 0 },
  ]
  const requestIds = ['r0']

  for (let count = 0; count < moves; count++) {
    const node = random.pick([stage.first, stage.second]).scheduled
    const task = random.pick(names)
    const row = model.row(task)
    const fingerprint = random.integer(5) === 0 || row === null ? random.pick(fingerprints) : row.fingerprint
    switch (random.integer(11)) {
      case 0: {
        const since = random.integer(3) === 0 ? (row?.mark ?? 1_000) + random.integer(5) : null
        const request = registrationOf(task, { fingerprint, starting: random.integer(2) === 0, since })
        const answer = await node.register(task, request)
        model.expect(
          task,
          answer.now,
          (was, moment) => registerTask(was, request, moment),
          answer,
          'register',
        )
        break
      }
      case 1:
      case 2:
      case 3:
      case 4: {
        const request = claimOf(task, { ...(await aSlot(stage, random, row)), fingerprint })
        const again = random.integer(6) === 0 ? { token: random.pick(runs.slice(-3)).token } : {}
        const claim = { ...request, ...somePolicy(stage, random), ...again, ...someOrder(random, row) }
        const answer = await node.claim(task, claim)
        model.expect(
          task,
          answer.now,
          (was, moment) => claimSlot(was, claim, moment, (slot) => model.lastAttempt(task, slot)),
          answer,
          'claim',
        )
        if (answer.outcome !== 'granted' && answer.outcome !== 'takeover') break
        runs.push({ ...answer, ...claim, slot: answer.slot })
        if (answer.remainingMs <= stage.abilities.minTtlMs) await node.waitForLapse(task)
        break
      }
      case 5: {
        const run = random.pick(runs.slice(-3))
        const request = { task, token: run.token, ttlMs: longMs * (1 + random.integer(4)) }
        const { now: before } = await node.poll()
        const answer = await node.refresh(request, request.ttlMs)
        model.expect(task, before, (was, { now }) => refreshRun(was, request, now), answer, 'refresh')
        break
      }
      case 6:
      case 7: {
        const run = random.pick(runs.slice(-2))
        const outcome = random.pick(['succeeded', 'failed', 'abandoned', 'skipped'] as const)
        const request = completionOf(
          { ...run, fence: run.fence + (random.integer(8) === 0 ? 1 : 0) },
          { outcome },
        )
        const [answer] = await node.completeAll([request])
        assert.ok(answer !== undefined && answer.outcome !== 'failed')
        const logged = model.logged(run.task, run.slot, run.attempt)
        model.expect(
          run.task,
          answer.now,
          (was, { now }) => completeRun(was, logged, request, now),
          answer,
          'complete',
        )
        break
      }
      case 8:
      case 9: {
        const kind = random.pick(['pause', 'resume', 'resume', 'cancel', 'order', 'order'] as const)
        const requestId = random.integer(3) === 0 ? random.pick(requestIds.slice(-5)) : `r${count}`
        requestIds.push(requestId)
        const fence = random.integer(2) === 0 ? null : random.pick(runs.slice(-2)).fence
        const before = random.integer(4) === 0 ? 'other' : (row?.orders ?? '')
        const orders = kind === 'order' ? { before, after: `orders ${count}` } : null
        const request = { task, kind, requestId, by: `by ${count}`, fence, orders }
        const { now: asked } = await node.poll()
        const answer = await node.control(task, kind, request)
        model.expect(
          task,
          asked,
          (was, { now }) => controlTask(was, request, model.version, now),
          answer,
          kind,
        )
        break
      }
      default:
        await model.compare(node, task)
    }
  }
  for (const task of names) await model.compare(stage.first.scheduled, task)
  assert.equal((await stage.second.scheduled.poll()).version, model.version)
}

/** A slot and the mark it follows: mostly right, sometimes decided, early or behind. */
async function aSlot(
  stage: Stage,
  random: SeededRandom,
  row: TaskRow | null,
): Promise<{ slot: number; after: number; gap: string }> {
  const mark = row?.mark ?? 1_000
  const ahead = 1 + random.integer(4)
  await stage.first.scheduled.waitFor(mark + ahead)
  const after = random.integer(6) === 0 ? mark - 3 : mark
  switch (random.integer(8)) {
    case 0:
      return { slot: mark - random.integer(3), after, gap: '' }
    case 1:
      return { slot: mark + 30 * longMs, after, gap: '' }
    default:
      return { slot: mark + ahead, after, gap: ahead > 1 ? 'down' : '' }
  }
}

function somePolicy(stage: Stage, random: SeededRandom): object {
  // Some runs lapse at once, and are waited for, so that it is never open whether a run has lapsed.
  const isBrief = random.integer(3) === 0
  return {
    ttlMs: isBrief ? stage.abilities.minTtlMs : longMs * (1 + random.integer(4)),
    overlap: random.pick(['skip', 'queue'] as const),
    onCrash: random.pick(['skip', 'retry'] as const),
    maxAttempts: 1 + random.integer(3),
    ...(random.integer(5) === 0 ? { decide: 'miss', reason: 'late' } : {}),
  }
}

/** Now and then a manual run: of orders that are there, or were. */
function someOrder(random: SeededRandom, row: TaskRow | null): Partial<ClaimRequest> {
  if (random.integer(3) !== 0) return {}
  const seen = row?.orders ?? ''
  const orders = { before: random.integer(5) === 0 ? 'gone' : seen, after: random.pick(['', `${seen}+`]) }
  return { orders, reason: 'manual', gap: 'ada' }
}

/** The tasks as the rules have them. */
class TaskModel {
  version = 0
  readonly #rows = new Map<string, TaskRow>()
  readonly #log = new Map<string, RunRecord>()
  readonly #history: string[] = []

  row(task: string): TaskRow | null {
    return this.#rows.get(task) ?? null
  }

  logged(task: string, slot: number, attempt: number): RunRecord | null {
    return this.#log.get(`${task}/${slot}/${attempt}`) ?? null
  }

  lastAttempt(task: string, slot: number): number {
    const rows = [...this.#log.values()].filter((row) => row.task === task && row.slot === slot)
    return Math.max(0, ...rows.map(({ attempt }) => attempt))
  }

  /** Applies a rule at the time that the store answered, and compares the answers. */
  expect<Answer extends object>(
    task: string,
    now: number,
    rule: (row: TaskRow | null, moment: { now: number; floor: number }) => TaskStep<Answer>,
    actual: object,
    move: string,
  ): void {
    const { answer, next, log, raisesVersion } = rule(this.row(task), { now: Math.floor(now), floor: 0 })
    this.#history.push(`${move} ${task} -> ${JSON.stringify(actual)}`)
    assert.deepEqual(comparable(actual), comparable(answer), this.#history.slice(-10).join('\n'))
    if (raisesVersion) this.version++
    const minted = 'fence' in actual ? (actual.fence as number) : undefined
    for (const change of log) this.#apply(task, change, minted)
    if (next === null) return
    const { run } = next
    const before = this.row(task)?.run ?? null
    const isNew = run !== null && (run.slot !== before?.slot || run.attempt !== before.attempt)
    if (isNew) assert.ok((minted as number) > (before?.fence ?? 0), 'a new run has a greater fence')
    this.#rows.set(task, isNew ? { ...next, run: { ...run, fence: minted as number } } : next)
  }

  /** Compares record and log of a task. */
  async compare(node: Stage['first']['scheduled'], task: string): Promise<void> {
    const [record] = await node.inspectAll([task])
    const row = this.row(task)
    const history = this.#history.slice(-10).join('\n')
    if (row === null) {
      assert.equal(record, null, history)
      return
    }
    assert.ok(record !== null && record !== undefined)
    assert.deepEqual(comparable(record), comparable(describeTask(row, Math.floor(record.now))), history)
    const rows = await node.log(task)
    const modelled = [...this.#log.values()]
      .filter((one) => one.task === task)
      .toSorted((a, b) => b.slot - a.slot || b.attempt - a.attempt)
    assert.deepEqual(rows.map(essence), modelled.map(essence), history)
  }

  #apply(task: string, change: LogChange, fence: number | undefined): void {
    if (change.kind === 'add') {
      const { row } = change
      this.#log.set(
        `${task}/${row.slot}/${row.attempt}`,
        row.fence === null ? row : { ...row, fence: fence ?? null },
      )
      return
    }
    const id = `${task}/${change.slot}/${change.attempt}`
    const row = this.#log.get(id) as RunRecord
    if (change.kind === 'late') this.#log.set(id, { ...row, late: change.outcome })
    else {
      const { state, reason, error } = change
      this.#log.set(id, { ...row, state, reason: reason ?? row.reason, error })
    }
  }
}

/** What an answer or a record says, without what only the store's clock can know. */
function comparable(answer: object): object {
  const copy: Record<string, unknown> = { ...answer }
  for (const time of ['now', 'fence', 'registeredAt', 'attendedUntil', 'version' in copy ? '' : 'version'])
    delete copy[time]
  if (typeof copy['remainingMs'] === 'number')
    copy['remainingMs'] = Math.round(copy['remainingMs'] / longMs) + 0
  const { running } = copy as { running?: { fence: number; remainingMs: number } | null }
  if (running)
    copy['running'] = { ...running, fence: 0, remainingMs: Math.round(running.remainingMs / longMs) + 0 }
  return copy
}

function essence(row: RunRecord): object {
  const { task, slot, attempt, state, reason, after, gap, fence, error, late } = row
  return { task, slot, attempt, state, reason, after, gap, fence, error, late }
}
