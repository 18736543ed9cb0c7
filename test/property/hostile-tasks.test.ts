import fc from 'fast-check'
import type { CallOptions, ClaimRequest, DriverSession, RegisterRequest } from 'leasehold/driver'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DriverFault } from '../../src/core/errors.ts'
import { freshNamespace } from '../support/stores.ts'
import { fuzz } from './fuzz.ts'
import { poisonableKinds, type PoisonableStore } from './poison.ts'

const call: CallOptions = { attempt: 1, lockedRows: 'wait' }
const tasks = ['before', 'bad', 'good'] as const

const registration = (task: string): RegisterRequest => ({
  task,
  fingerprint: 'every 1',
  definition: '{}',
  starting: true,
  attendMs: 60_000,
})

const claim = (task: string, slot: number, after: number, token: string): ClaimRequest => ({
  ...registration(task),
  slot,
  after,
  gap: '',
  token,
  ttlMs: 60_000,
  holder: '{}',
  overlap: 'skip',
  onCrash: 'skip',
  maxAttempts: 1,
  decide: 'run',
  reason: '',
})

/** Answers of the good ones, and that of the bad one: whatever it is, an error is one that trying again does not mend. */
function good(answers: readonly { readonly outcome: string; readonly error?: unknown }[]): readonly string[] {
  const [before, bad, after] = answers
  if (bad?.outcome === 'failed') {
    expect(bad.error).toBeInstanceOf(DriverFault)
    expect(['unusable', 'bad-item']).toContain((bad.error as DriverFault).kind)
  }
  return [before?.outcome ?? '', after?.outcome ?? '']
}

async function typed<Value>(calling: Promise<Value>): Promise<Value | DriverFault> {
  try {
    return await calling
  } catch (error) {
    if (!(error instanceof DriverFault)) throw new Error('A foreign exception.', { cause: error })
    expect(['unusable', 'bad-item']).toContain(error.kind)
    expect(error.message).toMatch(/[Dd]elete/)
    return error
  }
}

describe.each(poisonableKinds)('a spoilt task in $name', ({ isHere, poison, open }) => {
  let store: PoisonableStore
  beforeAll(async () => {
    if (isHere) store = await open()
  })
  afterAll(() => store?.close())

  const spoilt = fc
    .constantFrom('task' as const, 'run' as const)
    .chain((what) => poison(what).map((bad) => ({ what, bad })))

  it.skipIf(!isHere)(
    'fails its own calls or is taken for what it says: no other task is harmed',
    async () => {
      await fuzz(spoilt, { runs: 60, withinMs: 20_000 }, async ({ what, bad }) => {
        const namespace = freshNamespace()
        const session: DriverSession = store.first.open(namespace)
        const other: DriverSession = store.second.open(namespace)
        try {
          const registered = await session.tasks.register(tasks.map(registration), call)
          const marks = registered.map((answer) => ('mark' in answer ? answer.mark : Number.NaN))
          await bad.spoil(store, { what, namespace, name: 'bad' })

          // Two nodes want the same slots.
          await passMillisecond()
          const claims = (token: string) =>
            tasks.map((task, at) => claim(task, (marks[at] ?? 0) + 1, marks[at] ?? 0, `${token}-${task}`))
          const [one, two] = await Promise.all([
            session.tasks.claim(claims('one'), call),
            other.tasks.claim(claims('two'), call),
          ])
          for (const [at, outcome] of good(one).entries()) {
            const outcomes = [outcome, good(two)[at]]
            expect(outcomes.filter((each) => each === 'granted')).toHaveLength(1)
            expect(outcomes.filter((each) => each === 'decided' || each === 'busy')).toHaveLength(1)
          }
          const grants = [one[1], two[1]].filter(
            (answer) => answer?.outcome === 'granted' || answer?.outcome === 'takeover',
          )
          expect(grants.length).toBeLessThanOrEqual(1)

          const held = tasks.map((task, at) => ({
            task,
            token: `${one[at]?.outcome === 'granted' ? 'one' : 'two'}-${task}`,
            ttlMs: 60_000,
          }))
          expect(good(await session.tasks.refresh(held, call))).toEqual(['held', 'held'])
          const completed = await session.tasks.complete(
            tasks.map((task, at) => {
              const granted = [one[at], two[at]].find((answer) => answer?.outcome === 'granted')
              const { slot = 1, attempt = 1, fence = 1 } = granted?.outcome === 'granted' ? granted : {}
              return { task, slot, attempt, fence, outcome: 'succeeded' as const, reason: null, error: null }
            }),
            call,
          )
          expect(good(completed)).toEqual(['completed', 'completed'])

          await typed(session.tasks.inspect(['bad'], call))
          expect(await session.tasks.inspect(['before', 'good'], call)).toMatchObject([
            { task: 'before' },
            { task: 'good' },
          ])
          await typed(session.tasks.log({ task: 'bad', from: null, to: null, limit: 100 }, call))
          const log = await session.tasks.log({ task: 'good', from: null, to: null, limit: 100 }, call)
          expect(log.map(({ state }) => state)).toEqual(['succeeded', 'registered'])
          await typed(session.tasks.purge({ retentionMs: 86_400_000, limit: 100 }, call))
          expect(typeof (await session.tasks.poll(call)).version).toBe('number')
        } finally {
          await Promise.all([session.close(), other.close()])
        }
      })
    },
  )
})

/** Until a slot that is one later than the present mark is due. */
function passMillisecond(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 3)
  })
}
