import type { RunHistoryEntry } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { allCheckers } from '../../torture/checkers/all-checkers.ts'
import type { Evidence } from '../../torture/checkers/checker.ts'
import { excusedOverlapMs } from '../../torture/checkers/exclusive-belief.ts'
import { History } from '../../torture/history/read-history.ts'
import type { Fact, Line, RunName } from '../../torture/history/records.ts'
import { taskPlans } from '../../torture/task-plans.ts'

const bootAt = 1_000_000_000_000

/** The checkers that find something in a history, each once. */
function foundIn(lines: readonly Line[], tasks: Evidence['tasks'] = quietTasks()): readonly string[] {
  const found = allCheckers.flatMap((check) => check(evidenceOf(lines, tasks)))
  return [...new Set(found.map(({ checker }) => checker))]
}

function evidenceOf(lines: readonly Line[], tasks: Evidence['tasks'] = quietTasks()): Evidence {
  return {
    history: new History(lines),
    ttlMs: 1_000,
    requestTimeoutMs: 500,
    isFile: false,
    tasks,
    workedUntil: bootAt + 10_000,
    wallMinusBoot: bootAt,
  }
}

function line(at: number, by: string, fact: Fact): Line {
  return { at, by, ...fact }
}

function lease(by: string, fence: number, from: number, until: number): Line {
  return line(from, by, { is: 'granted', of: 'lock:a', fence, until })
}

function begun(by: string, edition = 1, wall = bootAt): Line {
  return line(0, by, { is: 'begun', place: 0, client: 'ioredis', edition, wall, self: 'host 1' })
}

function letGo(by: string, fence: number, at: number): Line {
  return line(at, by, { is: 'let-go', of: 'lock:a', fence })
}

function run(by: string, fence: number, from: number, name: RunName, wall = name.slot + 5): readonly Line[] {
  return [
    line(from, by, { is: 'granted', of: 'task:once', fence, until: from + 500, run: name, wall }),
    line(from + 10, by, { is: 'let-go', of: 'task:once', fence, run: name, outcome: 'done' }),
  ]
}

/** A run of the edited task, a slot per fence. */
function edited(by: string, fence: number): readonly Line[] {
  const { slot } = editedEntry(fence)
  const name = { slot: slot.getTime(), attempt: 1 }
  const from = name.slot - bootAt + 10
  return [
    line(from, by, {
      is: 'granted',
      of: 'task:edited',
      fence,
      until: from + 400,
      run: name,
      wall: name.slot + 10,
    }),
    line(from + 10, by, { is: 'let-go', of: 'task:edited', fence, run: name, outcome: 'done' }),
  ]
}

function editedEntry(fence: number): RunHistoryEntry {
  const slot = bootAt + 9_000 + fence * 500
  return { ...entry('succeeded', { slot, attempt: 1 }, fence), startedAt: new Date(slot + 10) }
}

/** All tasks registered at the very end, so that no slot is due. */
function quietTasks(): Map<string, readonly RunHistoryEntry[]> {
  const registered = entry('registered', { slot: bootAt + 10_000, attempt: 0 })
  return new Map(Object.keys(taskPlans).map((task) => [task, [registered]]))
}

/** The tasks, of which `once` has these entries and was registered so long after the boot. */
function onceIs(entries: readonly RunHistoryEntry[], registeredAfter = 0): Evidence['tasks'] {
  const registered = entry('registered', { slot: bootAt + registeredAfter, attempt: 0 })
  return quietTasks().set('once', [...entries.toReversed(), registered])
}

function entry(
  state: RunHistoryEntry['state'],
  { slot, attempt }: RunName,
  fence: number | null = null,
  reason: string | null = null,
): RunHistoryEntry {
  const at = new Date(slot)
  return {
    task: 'once',
    slot: at,
    attempt,
    state,
    reason,
    by: null,
    fence,
    holder: null,
    startedAt: at,
    endedAt: at,
    durationMs: 0,
    error: null,
    late: null,
  }
}

describe('the checkers of the torture find nothing in', () => {
  it.each<[string, readonly Line[]]>([
    [
      'a lease handed over',
      [lease('w0', 1, 0, 1_000), letGo('w0', 1, 500), lease('w1', 2, 501, 1_500), letGo('w1', 2, 600)],
    ],
    [
      'a lease that lapsed with its dead holder',
      [
        lease('w0', 1, 0, 1_000),
        line(400, 'observer', { is: 'ended', worker: 'w0', how: 'SIGKILL', cause: 'killed', tookMs: 0 }),
        lease('w1', 2, 1_011, 2_000),
        letGo('w1', 2, 1_500),
      ],
    ],
    [
      'a loss that was signalled in the first turn after a pause',
      [
        lease('w0', 1, 0, 1_000),
        line(3_000, 'w0', { is: 'gap', from: 900 }),
        line(3_001, 'w0', { is: 'lost', of: 'lock:a', fence: 1, reason: 'expired' }),
        line(3_500, 'w0', { is: 'closed' }),
      ],
    ],
    [
      'a loss that was signalled before its holder could look',
      [
        line(20, 'w0', { is: 'lost', of: 'lock:a', fence: 1, reason: 'expired' }),
        lease('w0', 1, 30, 25),
        line(500, 'w0', { is: 'closed' }),
      ],
    ],
    [
      'a grant that was over when it was first looked at',
      [lease('w1', 2, 10, 900), letGo('w1', 2, 20), lease('w0', 1, 30, 25)],
    ],
  ])('%s', (_what, lines) => {
    expect(foundIn(lines)).toEqual([])
  })

  it('slots of which each ran once or says why not', () => {
    const tasks = onceIs(
      [1, 2, 3, 4, 5, 6].map((second) =>
        second === 3
          ? entry('skipped', { slot: bootAt + 3_000, attempt: 0 }, null, 'overlap')
          : entry('succeeded', { slot: bootAt + second * 1_000, attempt: 1 }, second),
      ),
    )
    expect(foundIn(run('w0', 2, 2_010, { slot: bootAt + 2_000, attempt: 1 }), tasks)).toEqual([])
  })
})

describe('the checkers of the torture find', () => {
  const slot = { slot: bootAt + 9_000, attempt: 1 }
  const allOf = (entries: readonly RunHistoryEntry[]) => onceIs(entries, 8_500)

  it.each<[checker: string, what: string, lines: readonly Line[], tasks?: Evidence['tasks']]>([
    [
      'exclusive-belief',
      'two who believe at once',
      [lease('w0', 1, 0, 1_000), letGo('w0', 1, 901), lease('w1', 2, 900, 1_500), letGo('w1', 2, 1_000)],
    ],
    [
      'exclusive-belief',
      'a belief that a late renewal has made longer',
      [
        lease('w0', 1, 0, 300),
        line(200, 'w0', { is: 'trusted', of: 'lock:a', fence: 1, until: 800 }),
        lease('w1', 2, 700, 1_500),
        letGo('w1', 2, 750),
      ],
    ],
    [
      'fence-order',
      'a fence that is lower than one before',
      [lease('w0', 5, 0, 1_000), letGo('w0', 5, 100), lease('w1', 4, 200, 900), letGo('w1', 4, 300)],
    ],
    [
      'fence-order',
      'a fence that was issued twice',
      [lease('w0', 5, 0, 1_000), letGo('w0', 5, 100), lease('w1', 5, 200, 900), letGo('w1', 5, 300)],
    ],
    [
      'fenced-resource',
      'an accepted write that another has replaced',
      [1, 1].map((value, index) =>
        line(index, 'observer', {
          is: 'resource',
          verb: 'write',
          of: 'lock:a',
          fence: 7,
          value,
          accepted: true,
        }),
      ),
    ],
    [
      'loss-in-time',
      'a loss that was signalled after the deadline',
      [
        lease('w0', 1, 0, 1_000),
        line(1_100, 'w0', { is: 'lost', of: 'lock:a', fence: 1, reason: 'expired' }),
      ],
    ],
    [
      'loss-in-time',
      'a loss that was never signalled',
      [lease('w0', 1, 0, 1_000), line(2_000, 'w0', { is: 'closed' })],
    ],
    [
      'liveness',
      'a key that stays closed when all have ended',
      [line(0, 'observer', { is: 'probe', of: 'lock:a', outcome: 'held', tookMs: 8_000 })],
    ],
    [
      'liveness',
      'a key that is asked for and not granted when all is well',
      [
        line(0, 'observer', { is: 'calm' }),
        line(1, 'w0', { is: 'asked', of: 'lock:hot-1', ask: 1, waitMs: null }),
        line(5_000, 'w1', { is: 'asked', of: 'lock:hot-1', ask: 1, waitMs: null }),
      ],
    ],
    ['leaks', 'an unhandled rejection', [line(0, 'w0', { is: 'unhandled', error: 'Error: oops' })]],
    [
      'leaks',
      'a process that does not end after its close',
      [
        begun('w0'),
        line(9, 'observer', { is: 'ended', worker: 'w0', how: 'SIGKILL', cause: 'asked', tookMs: 9_000 }),
      ],
    ],
    [
      'leaks',
      'a process that died of itself',
      [line(0, 'observer', { is: 'ended', worker: 'w0', how: '70', cause: 'nobody', tookMs: 0 })],
    ],
    [
      'once-per-slot',
      'a slot that two ran',
      [...run('w0', 1, 9_010, slot), ...run('w1', 2, 9_030, slot)],
      allOf([entry('succeeded', slot, 1), entry('succeeded', slot, 2)]),
    ],
    [
      'no-slot-early',
      'a slot that ran before it was due',
      run('w0', 1, 8_990, slot, slot.slot - 1),
      allOf([entry('succeeded', slot, 1)]),
    ],
    ['no-silent-miss', 'a slot that is nowhere', [], onceIs([], 4_500)],
    [
      'no-silent-miss',
      'a slot that was missed for no reason',
      [],
      allOf([entry('missed', { ...slot, attempt: 0 })]),
    ],
    [
      'at-most-once',
      'a second attempt that nobody asked for',
      run('w0', 1, 9_010, { ...slot, attempt: 2 }),
      allOf([entry('succeeded', { ...slot, attempt: 2 }, 1)]),
    ],
    [
      'at-least-once',
      'a lost attempt that nobody made again',
      [],
      quietTasks().set('retried', [
        entry('lost', { slot: bootAt + 4_200, attempt: 1 }, 1),
        entry('registered', { slot: bootAt + 4_100, attempt: 0 }),
      ]),
    ],
    [
      'edited-schedule',
      'an old edition that comes back',
      [begun('w0', 1), begun('w1', 2), ...edited('w0', 1), ...edited('w1', 2), ...edited('w0', 3)],
      quietTasks().set(
        'edited',
        [1, 2, 3].map((fence) => editedEntry(fence)),
      ),
    ],
    [
      'edited-schedule',
      'an edit that nobody wrote down',
      [begun('w0', 1), begun('w1', 2), ...edited('w0', 1), ...edited('w1', 2)],
      quietTasks().set(
        'edited',
        [1, 2].map((fence) => editedEntry(fence)),
      ),
    ],
    [
      'edited-schedule',
      'an edition that fires what was due before anybody knew of it',
      [begun('w0', 1, bootAt + 9_600), ...edited('w0', 1)],
      quietTasks().set('edited', [editedEntry(1)]),
    ],
    [
      'true-reasons',
      'a slot that was missed because nobody was there, and somebody was',
      [begun('w0'), ...[0, 2_000, 4_000, 6_000, 8_000, 10_000].map((at) => line(at, 'w0', { is: 'turn' }))],
      onceIs([entry('missed', { slot: bootAt + 6_000, attempt: 0 }, null, 'down')], 5_500),
    ],
    [
      'wait-in-time',
      'an acquire that outlasts its wait',
      [
        line(0, 'w0', { is: 'asked', of: 'lock:a', ask: 1, waitMs: 300 }),
        line(2_000, 'w0', { is: 'settled', of: 'lock:a', ask: 1, outcome: 'STORE_UNAVAILABLE' }),
      ],
    ],
    [
      'wait-in-time',
      'an acquire that never settles',
      [line(0, 'w0', { is: 'asked', of: 'lock:a', ask: 1, waitMs: 300 }), line(2_000, 'w0', { is: 'turn' })],
    ],
    [
      'release-in-time',
      'a release that takes longer than a request',
      [line(2_000, 'w0', { is: 'given-back', of: 'lock:a', fence: 1, outcome: 'unknown', tookMs: 1_900 })],
    ],
    [
      'own-result',
      'a result that is not the callback’s',
      [line(0, 'w0', { is: 'returned', of: 'lock:a', fence: 1, wanted: 'it threw 1', got: 'it was lost' })],
    ],
    [
      'honest-null',
      'a key that is held by nobody',
      [
        lease('w0', 1, 0, 900),
        letGo('w0', 1, 100),
        line(110, 'w0', { is: 'given-back', of: 'lock:a', fence: 1, outcome: 'released', tookMs: 10 }),
        line(5_000, 'w1', { is: 'asked', of: 'lock:a', ask: 1, waitMs: 0 }),
        line(5_001, 'w1', { is: 'settled', of: 'lock:a', ask: 1, outcome: 'held' }),
      ],
    ],
    [
      'many-held',
      'leases that are lost while nothing is wrong',
      [begun('w0'), line(9_000, 'w0', { is: 'hoarded', leases: 9, from: 1_000, held: 9, lost: 1 })],
    ],
    [
      'fence-order',
      'a fence that is lower after a deletion',
      [
        ...[1, 2].flatMap((ask) => [
          line(ask * 1_000, 'w0', { is: 'asked', of: 'lock:a', ask, waitMs: 0 }),
          line(ask * 1_000 + 1, 'w0', {
            is: 'granted',
            of: 'lock:a',
            fence: 3 - ask,
            until: ask * 1_000 + 500,
            ask,
          }),
          letGo('w0', 3 - ask, ask * 1_000 + 2),
        ]),
        line(1_500, 'observer', {
          is: 'fault',
          kind: 'deletion',
          phase: 'begin',
          exception: { kind: 'deletion', of: 'lock:a' },
        }),
      ],
    ],
    ['records-agree', 'a run that is not in the history', run('w0', 1, 11_000, slot), allOf([])],
    [
      'records-agree',
      'a success that the handler knows nothing of',
      run('w0', 1, 11_000, slot).slice(0, 1),
      allOf([entry('succeeded', slot, 1)]),
    ],
    [
      'no-overlap-of-runs',
      'two runs of a task that both trust their lease',
      [...run('w0', 1, 9_010, slot), ...run('w1', 2, 9_015, { ...slot, attempt: 2 })],
      allOf([entry('lost', slot, 1), entry('succeeded', { ...slot, attempt: 2 }, 2)]),
    ],
  ])('%s: %s', (checker, _what, lines, tasks) => {
    expect(foundIn(lines, tasks)).toContain(checker)
  })
})

describe('an edited schedule', () => {
  const change = [begun('w0', 1), begun('w1', 2), ...edited('w0', 1), ...edited('w1', 2)]

  it('is explained by the history', () => {
    const edit = entry('missed', { slot: bootAt + 9_700, attempt: 0 }, null, 'edited')
    const tasks = quietTasks().set('edited', [editedEntry(2), edit, editedEntry(1)])
    expect(foundIn(change, tasks)).toEqual([])
  })

  it('is not in a history that was emptied since', () => {
    const emptied = line(11_000, 'observer', {
      is: 'fault',
      kind: 'emptied',
      phase: 'begin',
      exception: { kind: 'emptied', of: null },
    })
    expect(foundIn([...change, emptied], quietTasks())).not.toContain('edited-schedule')
  })
})

describe('a named exception', () => {
  const lines = (of: string): readonly Line[] => [
    lease('w0', 1, 0, 1_000),
    line(300, 'observer', {
      is: 'fault',
      kind: 'deletion',
      phase: 'begin',
      exception: { kind: 'deletion', of },
    }),
    lease('w1', 2, 350, 1_200),
    letGo('w1', 2, 1_100),
  ]

  it('explains an overlap of its key, and is reported as a figure', () => {
    expect(foundIn(lines('lock:a'))).toEqual([])
    expect(excusedOverlapMs(evidenceOf(lines('lock:a')))).toMatchObject({ deletion: 650 })
  })

  it('explains none that lasts longer than a ttl', () => {
    const renewed = line(1_600, 'w0', { is: 'trusted', of: 'lock:a', fence: 1, until: 2_600 })
    const successor = line(1_000, 'w1', { is: 'trusted', of: 'lock:a', fence: 2, until: 2_600 })
    const longer = lines('lock:a').filter(({ is }) => is !== 'let-go')
    expect(foundIn([...longer, renewed, successor])).toContain('exception-bound')
  })

  it('explains none of another key', () => {
    expect(foundIn(lines('lock:b'))).toEqual(['exclusive-belief'])
  })

  it('explains no lost write', () => {
    const write = (at: number, value: number): Line =>
      line(at, 'observer', { is: 'resource', verb: 'write', of: 'lock:a', fence: 9, value, accepted: true })
    expect(foundIn([...lines('lock:a'), write(400, 1), write(410, 1)])).toEqual(['fenced-resource'])
  })
})
