import { describe, expect, it } from 'vitest'
import { DriverFault } from '../../../src/core/errors.ts'
import type { CallOptions, ClaimRequest, DriverSession } from 'leasehold/driver'
import { postgresDriver } from 'leasehold/postgres'
import { seededRandom } from '../../../src/testing/seeded-random.ts'
import { isAvailable } from '../../support/stores.ts'
import { call, type Database, freshDatabase, token } from './database.ts'

const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']

interface Run {
  readonly task: string
  readonly slot: number
  readonly attempt: number
  readonly fence: number
  readonly token: string
}

/** What the nodes of the test have seen happen. */
class Witness {
  readonly granted = new Set<string>()
  readonly faults: string[] = []
  readonly violations: string[] = []
  readonly #fences = new Set<string>()

  sawRun({ task, slot, attempt, fence }: Run): void {
    const name = `${task} ${slot} ${attempt}`
    if (this.granted.has(name)) this.violations.push(`${name} granted twice`)
    if (this.#fences.has(`${task} ${fence}`)) this.violations.push(`${name} has the fence of another run`)
    this.granted.add(name)
    this.#fences.add(`${task} ${fence}`)
  }
}

describe.skipIf(!(await isAvailable('postgres')))('many nodes on the same tasks', () => {
  it('neither deadlock nor run a slot twice, whatever the order of their batches', async () => {
    await using database = await freshDatabase()
    const witness = await watch(database, { nodes: 12, forMs: 4_000 })
    expect(witness.violations).toEqual([])
    expect(witness.faults).toEqual([])
    expect(witness.granted.size).toBeGreaterThan(100)
  })

  it.each(['repeatable read', 'serializable'])('nor where the default isolation is %s', async (level) => {
    await using database = await freshDatabase()
    const options = `-c default_transaction_isolation=${level.replaceAll(' ', '\\ ')}`
    const witness = await watch(database, { nodes: 6, forMs: 2_000, options })
    expect(witness.violations).toEqual([])
    expect(new Set(witness.faults)).toEqual(new Set(['retry 40001']))
    expect(witness.granted.size).toBeGreaterThan(20)
  })
})

async function watch(
  database: Database,
  { nodes, forMs, options = '' }: { nodes: number; forMs: number; options?: string },
): Promise<Witness> {
  const clients = await Promise.all(Array.from({ length: nodes }, () => database.client({ options })))
  const sessions = clients.map((client) => postgresDriver(client, { listen: false }).open('ns'))
  const witness = new Witness()
  const endAt = performance.now() + forMs
  await Promise.all(sessions.map((session, index) => work(session, index, witness, endAt)))
  // Every move of a mark is in the log, and names the mark that it moved.
  for (const task of names) {
    const log = await sessions[0]!.tasks.log({ task, from: null, to: null, limit: 1_000_000 }, call)
    const moves = log.filter(({ attempt }) => attempt <= 1).toReversed()
    expect(moves.length).toBeGreaterThan(3)
    expect(moves.slice(1).map(({ after }) => after)).toEqual(moves.slice(0, -1).map(({ slot }) => slot))
  }
  return witness
}

async function work(session: DriverSession, index: number, witness: Witness, endAt: number): Promise<void> {
  const random = seededRandom(index + 1)
  const { tasks } = session
  const marks = new Map(names.map((name) => [name, 0]))
  const own: Run[] = []
  let now = 0
  let request = 0
  const some = () => names.filter(() => random.integer(2) === 0).toSorted(() => random.next() - 0.5)
  const how = (): CallOptions => ({ attempt: 1, lockedRows: random.integer(4) === 0 ? 'wait' : 'skip' })
  const schedule = () => ({
    fingerprint: random.integer(30) === 0 ? `f${request}` : 'f',
    definition: '{}',
    attendMs: 40,
  })
  const learn = (task: string, answer: object) => {
    if ('mark' in answer) marks.set(task, answer.mark as number)
    if ('now' in answer) now = answer.now as number
  }

  const register = async () => {
    const requests = some().map((task) => ({ task, ...schedule(), starting: random.integer(2) === 0 }))
    if (requests.length === 0) return
    const answers = await tasks.register(requests, how())
    for (const [at, answer] of answers.entries()) learn(requests[at]!.task, answer)
  }
  const claim = async () => {
    const requests = some().map((task): ClaimRequest => {
      const after = marks.get(task)!
      const slot = Math.max(after + 1, now)
      const policy = {
        overlap: random.pick(['skip', 'queue'] as const),
        onCrash: random.pick(['skip', 'retry'] as const),
      } as const
      const decide = random.integer(8) === 0 ? 'miss' : 'run'
      const run = {
        task,
        slot,
        after,
        gap: 'late',
        token: token() + index,
        ttlMs: 20 + random.integer(60),
        holder: '{}',
      }
      return { ...schedule(), ...policy, ...run, maxAttempts: 3, decide, reason: 'late' }
    })
    if (requests.length === 0) return
    const answers = await tasks.claim(requests, how())
    for (const [at, answer] of answers.entries()) {
      const { task, token: minted } = requests[at]!
      learn(task, answer)
      if (answer.outcome !== 'granted' && answer.outcome !== 'takeover') continue
      const { slot, attempt, fence } = answer
      const run = { task, slot, attempt, fence, token: minted }
      witness.sawRun(run)
      own.push(run)
    }
  }
  const refresh = async () => {
    const requests = own.slice(-4).map(({ task, token: minted }) => ({ task, token: minted, ttlMs: 50 }))
    if (requests.length > 0) await tasks.refresh(requests, how())
  }
  const complete = async () => {
    const ended = new Map(own.splice(0, 1 + random.integer(4)).map((run) => [run.task, run]))
    const requests = [...ended.values()].map(({ task, slot, attempt, fence }) => {
      return { task, slot, attempt, fence, outcome: 'succeeded', reason: null, error: null } as const
    })
    if (requests.length > 0) await tasks.complete(requests, how())
  }
  const control = async () => {
    const kind = random.pick(['pause', 'resume', 'resume', 'cancel'] as const)
    await tasks.control(
      { task: random.pick(names), kind, requestId: `${index}-${++request}`, by: 'test', fence: null },
      how(),
    )
  }

  while (performance.now() < endAt) {
    try {
      await random.pick([register, claim, claim, claim, refresh, complete, complete, control])()
    } catch (error) {
      if (!(error instanceof DriverFault)) throw error
      witness.faults.push(`${error.kind} ${(error.cause as { code?: string }).code}`)
    }
  }
}
