import { assertExcludes, cycle, type MutexSubject } from '../mutex.ts'
import { inTurns, type Turn } from '../rounds.ts'
import type { Finding, Pace, Role } from '../scenario.ts'

export interface CycleOptions<Connections> {
  readonly subjects: readonly MutexSubject<Connections>[]
  readonly connections: Connections
  /** How many loops cycle at once. */
  readonly callers: number
  readonly pace: Pace
  /** What is cleared up before a turn, outside of its time. */
  readonly before?: () => Promise<unknown>
}

/** For the heading of a scenario. */
export function freshKeysOn(store: string, callers: number): string {
  return `acquire and release of fresh keys on ${store}, ${callers} concurrent caller${callers === 1 ? '' : 's'}`
}

/** How often a second each subject cycles fresh keys, over the same connections. */
export async function measureCycles<Connections>({
  subjects,
  connections,
  callers,
  pace,
  before,
}: CycleOptions<Connections>): Promise<Finding[]> {
  const mutexes = []
  for (const { open, ...subject } of subjects) mutexes.push({ ...subject, mutex: await open(connections) })
  for (const { name, mutex } of mutexes) await assertExcludes(name, mutex)
  const turns = mutexes.map(({ name, role, mutex }) => ({
    name,
    role,
    run: (ms: number) => cycle(mutex, callers, ms),
  }))
  const findings = await throughputs(turns, pace, before)
  for (const { mutex } of mutexes) await mutex.close()
  return findings
}

/** What each comes to in a second, in turns. */
export async function throughputs(
  turns: readonly (Turn & { readonly role: Role })[],
  pace: Pace,
  before?: () => Promise<unknown>,
): Promise<Finding[]> {
  const values = await inTurns(turns, pace, before)
  return turns.map(({ name, role }) => ({
    subject: name,
    role,
    metric: 'opsPerSecond',
    values: values.get(name) ?? [],
  }))
}
