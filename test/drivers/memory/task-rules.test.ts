// Random histories of one task against the rules themselves: what must hold whatever the nodes do.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ClaimRequest, RunRecord } from '../../../src/driver/index.ts'
import {
  claimSlot,
  completeRun,
  controlTask,
  refreshRun,
  registerTask,
} from '../../../src/driver/task-rules.ts'
import type { LogChange, TaskRow, TaskStep } from '../../../src/driver/task-rules.ts'

const start = 1_796_000_000_000
const periodMs = 10

interface Move {
  readonly kind:
    | 'claim'
    | 'again'
    | 'refresh'
    | 'complete'
    | 'pause'
    | 'resume'
    | 'cancel'
    | 'edit'
    | 'register'
  readonly waitMs: number
  readonly node: number
  readonly overlap: 'skip' | 'queue'
  readonly onCrash: 'skip' | 'retry'
  readonly decide: 'run' | 'miss'
  readonly staleAfter: boolean
}

const moves: fc.Arbitrary<Move> = fc.record({
  kind: fc.constantFrom<Move['kind'][]>(
    ...([
      'claim',
      'claim',
      'claim',
      'claim',
      'again',
      'refresh',
      'complete',
      'complete',
      'register',
    ] as const),
    ...(['pause', 'resume', 'resume', 'cancel', 'edit'] as const),
  ),
  waitMs: fc.constantFrom(0, 0, 1, 5, 11, 40),
  node: fc.integer({ min: 0, max: 2 }),
  overlap: fc.constantFrom('skip', 'queue'),
  onCrash: fc.constantFrom('skip', 'retry'),
  decide: fc.constantFrom('run', 'run', 'run', 'miss'),
  staleAfter: fc.boolean(),
})

test('every slot is decided once, has a reason or a run, and no two runs hold the task at once', () => {
  fc.assert(
    fc.property(fc.array(moves, { maxLength: 60 }), (history) => {
      const world = new World()
      for (const [index, move] of history.entries()) world.play(move, index)
      world.check()
    }),
    { numRuns: 500 },
  )
})

/** One task in a store, and everything that must be remembered about what the store said. */
class World {
  now = start
  row: TaskRow | null = null
  readonly log = new Map<string, RunRecord>()
  fingerprint = 'f0'
  version = 0
  floor = 0
  marks: number[] = []
  readonly fences: number[] = []
  readonly firstAttempts: number[] = []
  readonly applied: string[] = []
  readonly claims = new Map<number, ClaimRequest>()
  /** The last grant of each node. */
  readonly grants = new Map<number, { slot: number; attempt: number; fence: number; token: string }>()

  play(move: Move, index: number): void {
    this.now += move.waitMs
    const { now, row } = this
    const moment = { now, floor: this.floor }
    const grant = this.grants.get(move.node)
    switch (move.kind) {
      case 'claim':
        this.#claim(this.#claimRequest(move, index), move.node)
        return
      case 'again': {
        const claim = this.claims.get(move.node)
        if (claim !== undefined) this.#claim(claim, move.node)
        return
      }
      case 'refresh': {
        if (grant === undefined) return
        const { answer } = this.#apply(refreshRun(row, { task: 't', token: grant.token, ttlMs: 20 }, now))
        const isHolder = row?.run?.token === grant.token && row.run.expiresAt > now
        expect(answer.outcome).toBe(isHolder ? 'held' : 'lost')
        return
      }
      case 'complete': {
        if (grant === undefined) return
        const logged = this.log.get(`${grant.slot}/${grant.attempt}`) ?? null
        const outcome = { outcome: 'succeeded', reason: null, error: null } as const
        this.#apply(completeRun(row, logged, { task: 't', ...grant, ...outcome }, now))
        return
      }
      case 'register':
      case 'edit': {
        if (move.kind === 'edit') this.fingerprint = `f${index}`
        const { fingerprint } = this
        this.#apply(
          registerTask(
            row,
            { task: 't', fingerprint, definition: '', starting: true, attendMs: 1000 },
            moment,
          ),
        )
        return
      }
      default: {
        const request = { task: 't', kind: move.kind, requestId: `r${index >> 2}`, by: 'me', fence: null }
        const { answer } = this.#apply(controlTask(row, request, this.version, now))
        if ('version' in answer) expect(answer.version).toBe(this.version)
        if (answer.outcome === 'applied') expect(this.applied).not.toContain(request.requestId)
        if (answer.outcome === 'repeated') expect(this.applied).toContain(request.requestId)
        if (answer.outcome === 'applied') this.applied.push(request.requestId)
      }
    }
  }

  /** From the registration to the mark, rows lie end to end: none is missing, and none is told twice. */
  check(): void {
    if (this.row === null) return
    const decided = [...this.log.values()]
      .filter((row) => row.attempt <= 1)
      .toSorted((a, b) => a.slot - b.slot)
    let reached = decided[0]?.slot
    for (const row of decided.slice(1)) {
      expect(row.after).toBe(reached)
      reached = row.slot
    }
    expect(reached).toBe(this.row.mark)
    expect(new Set(this.firstAttempts).size).toBe(this.firstAttempts.length)
    const open = [...this.log.values()].filter((row) => row.state === 'running')
    expect(open.map((row) => row.fence)).toEqual(this.row.run === null ? [] : [this.row.run.fence])
    expect(this.fences).toEqual([...new Set(this.fences)].toSorted((a, b) => a - b))
    expect(this.marks).toEqual(this.marks.toSorted((a, b) => a - b))
  }

  #claimRequest(move: Move, index: number): ClaimRequest {
    const mark = this.row?.mark ?? this.now
    const due = (Math.floor(mark / periodMs) + 1) * periodMs
    const { overlap, onCrash, decide } = move
    const policies = { overlap, onCrash, decide, maxAttempts: 3, reason: 'late', gap: 'down' }
    return {
      task: 't',
      slot: due,
      after: move.staleAfter ? mark - 1 : mark,
      fingerprint: this.fingerprint,
      definition: '',
      attendMs: 1000,
      token: `token-${index}`,
      ttlMs: 20,
      holder: `node-${move.node}`,
      ...policies,
    }
  }

  #claim(request: ClaimRequest, node: number): void {
    this.claims.set(node, request)
    const before = this.row
    const { answer } = this.#apply(
      claimSlot(this.row, request, { now: this.now, floor: this.floor }, () => 0),
    )
    if (answer.outcome === 'failed' || answer.outcome === 'busy') throw new Error(answer.outcome)
    expect(answer.mark).toBe(this.row?.mark)
    expect(answer.mark).toBeLessThanOrEqual(this.now)
    if (answer.outcome === 'early') expect(request.slot).toBeGreaterThan(this.now)
    if (answer.mark !== before?.mark && answer.outcome !== 'unregistered') {
      expect(request).toMatchObject({ slot: answer.mark, after: before?.mark })
    }
    if (before !== null && request.fingerprint === before.fingerprint && request.slot <= before.mark) {
      expect(['decided', 'granted', 'takeover', 'early']).toContain(answer.outcome)
    }
    const lapsed = before?.run && before.run.expiresAt <= this.now ? before.run : null
    if (lapsed?.token === request.token) {
      expect(['granted', 'takeover']).not.toContain(answer.outcome)
      expect(this.row?.run).toEqual(lapsed)
    }
    if (answer.outcome !== 'granted' && answer.outcome !== 'takeover') return
    const { slot, attempt, fence } = answer
    if (attempt > 1 && lapsed !== null) expect(lapsed.stop).toBeNull()
    expect(slot).toBeLessThanOrEqual(this.now)
    const own = before?.run?.token === request.token && before.run.expiresAt > this.now ? before.run : null
    expect(this.row?.pausedBy === null || own !== null).toBe(true)
    if (own !== null) {
      expect(fence).toBe(own.fence)
    } else {
      expect(before?.run === null || (before?.run?.expiresAt ?? 0) <= this.now).toBe(true)
      this.fences.push(fence)
      if (attempt === 1) this.firstAttempts.push(slot)
    }
    this.grants.set(node, { slot, attempt, fence, token: request.token })
  }

  #apply<Answer>(step: TaskStep<Answer>): TaskStep<Answer> {
    if (step.next !== null) {
      this.row = step.next
      this.marks.push(step.next.mark)
      this.floor = Math.max(this.floor, step.next.run?.fence ?? 0)
    }
    for (const change of step.log) this.#note(change)
    if (step.raisesVersion) this.version += 1
    return step
  }

  #note(change: LogChange): void {
    if (change.kind === 'add') {
      const id = `${change.row.slot}/${change.row.attempt}`
      expect(this.log.has(id), `${id} was told before`).toBe(false)
      this.log.set(id, change.row)
      return
    }
    const id = `${change.slot}/${change.attempt}`
    const row = this.log.get(id)
    if (row === undefined) throw new Error(`${id} was never told`)
    if (change.kind === 'late') this.log.set(id, { ...row, late: change.outcome })
    else this.log.set(id, { ...row, state: change.state, endedAt: change.endedAt })
  }
}
