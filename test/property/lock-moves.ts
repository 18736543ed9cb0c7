import fc from 'fast-check'
import { expect } from 'vitest'
import type { Lease } from 'leasehold'
import { toStoredKey } from '../../src/core/stored-key.ts'
import type { Grant, LockModel } from './lock-model.ts'
import { briefMs, longMs, type LockWorld, within } from './lock-world.ts'
import { move, type Move } from './move.ts'
import { strangerMoves } from './stranger-moves.ts'

/** A plain key, one that is no ASCII, and one that is stored as a hash. */
export const keys = ['a', 'clé 🔑', 'x'.repeat(300)] as const

const process = fc.nat(2)
const key = fc.constantFrom(...keys)
const ttlMs = fc.constantFrom(longMs, 2 * longMs)

/** A lease of a process that lives: the last one that was granted, or the one before, and so on. */
function chosen({ grants }: LockModel, back: number): Grant | undefined {
  return grants.filter(({ mind }) => mind !== 'dead').at(-1 - back)
}

/** What users and operators do, and what happens to processes. */
export const lockMoves: readonly fc.Arbitrary<Move<LockModel, LockWorld>>[] = [
  ...strangerMoves,
  move('acquire', { process, key, ttlMs }, acquire),
  move('acquire', { process, key, ttlMs }, acquire),
  move('acquire and let it lapse', { process, key }, letLapse),
  move(
    'wait',
    { process, key },
    async (model, world, { process: by, key: of }) => {
      world.startWaiting(model.wait(of, by))
      await world.handOver(model, of)
    },
    (model) => model.waiting.length < 4,
  ),
  move('wait in vain', { process, key }, async (model, world, { process: by, key: of }) => {
    const found = await world.locks(by).acquire(of, { wait: 3, waitStep: 2, ttl: longMs })
    await keepOrMiss(model, world, { by, of, found, ttl: longMs })
  }),
  move(
    'cancel a wait',
    { index: fc.nat(3) },
    async (model, world, { index }) => {
      const waiting = model.waiting[index % model.waiting.length] as LockModel['waiting'][number]
      await world.cancelWait(waiting)
      model.leaveLine(waiting)
      await world.handOver(model, waiting.key)
    },
    (model) => model.waiting.length > 0,
  ),
  ...ofLeases('extend', (model, world, grant, toMs) => extend(model, world, grant, toMs)),
  ...ofLeases('release', (model, world, grant) => release(model, world, grant)),
  move('run', { process, key, throws: fc.boolean() }, run),
  move(
    'force a release',
    { process, key, immediate: fc.boolean(), sawStaleFence: fc.boolean() },
    forceRelease,
  ),
  move(
    'delete the record',
    { key },
    async (model, world, { key: of }) => {
      await world.forget(of)
      model.forgotten(of)
    },
    // Nobody tells those who wait: they look again some seconds later.
    (model, { key: of }) => model.entry(of).line.length === 0,
  ),
  move('look', { process }, look),
  move('close', { process }, close),
  move('crash', { process }, crash),
  move(
    'die with a brief lease',
    { process, key },
    dieBriefly,
    (model, { key: of }) => model.holder(of) === null,
  ),
]

/** The same move twice, for it is drawn more often then. */
function ofLeases(
  name: string,
  act: (model: LockModel, world: LockWorld, grant: Grant, toMs: number) => Promise<void>,
): readonly fc.Arbitrary<Move<LockModel, LockWorld>>[] {
  const one = move<{ back: number; toMs: number }, LockModel, LockWorld>(
    name,
    { back: fc.nat(6), toMs: ttlMs },
    (model, world, { back, toMs }) => act(model, world, chosen(model, back) as Grant, toMs),
    (model, { back }) => chosen(model, back) !== undefined,
  )
  return [one, one]
}

interface Sought {
  readonly by: number
  readonly of: string
  readonly found: Lease | null
  readonly ttl: number
}

async function acquire(
  model: LockModel,
  world: LockWorld,
  { process: by, key: of, ttlMs: ttl }: { process: number; key: string; ttlMs: number },
): Promise<void> {
  const found = await world.locks(by).acquire(of, { ttl })
  await keepOrMiss(model, world, { by, of, found, ttl })
}

async function keepOrMiss(model: LockModel, world: LockWorld, { by, of, found, ttl }: Sought): Promise<void> {
  expect(found === null ? 'held' : 'granted').toBe(model.holder(of) === null ? 'granted' : 'held')
  if (found !== null) world.keep(model, by, found, ttl)
}

async function letLapse(
  model: LockModel,
  world: LockWorld,
  { process: by, key: of }: { process: number; key: string },
): Promise<void> {
  const wasFree = model.holder(of) === null
  const found = await world.acquireBriefly(model, by, of)
  expect(found === null ? 'held' : 'granted').toBe(wasFree ? 'granted' : 'held')
  if (found === null) return
  const { token, fence } = found
  const grant: Grant = { key: of, process: by, token, fence, ttlMs: briefMs, mind: 'trusts' }
  model.granted(grant)
  world.leases.set(grant, found)
  await world.untilFree(of)
  model.lapsed(of)
  grant.mind = 'knows it lost'
}

async function extend(model: LockModel, world: LockWorld, grant: Grant, toMs: number): Promise<void> {
  const extending = (world.leases.get(grant) as Lease).extend(toMs)
  const { isRevoked } = model.entry(grant.key)
  if (grant.mind === 'trusts' && model.holds(grant) && !isRevoked) {
    await extending
    grant.ttlMs = Math.max(grant.ttlMs, toMs)
    return
  }
  await expect(extending).rejects.toMatchObject({ code: 'LEASE_LOST' })
  if (grant.mind !== 'trusts') return
  grant.mind = 'knows it lost'
  if (!model.holds(grant) || !isRevoked) return
  // It confirms, and the key is free.
  await world.quiet()
  model.released(grant.key, grant.token)
  await world.handOver(model, grant.key)
}

async function release(model: LockModel, world: LockWorld, grant: Grant): Promise<void> {
  const lease = world.leases.get(grant) as Lease
  const { key: of, token, mind } = grant
  const answer = model.releaseAnswer(of, token)
  const [outcome, again] = await Promise.all([lease.release(), lease.release()])
  expect(again).toBe(outcome)
  expect(['released', 'already-lost']).toContain(outcome)
  if (mind === 'knows it lost') expect(outcome).toBe('already-lost')
  if (mind === 'trusts' && answer !== null)
    expect(outcome).toBe(answer === 'released' ? 'released' : 'already-lost')
  if (mind === 'trusts') grant.mind = 'released'
  if (mind !== 'released') model.released(of, token)
  await world.handOver(model, of)
}

async function run(
  model: LockModel,
  world: LockWorld,
  { process: by, key: of, throws }: { process: number; key: string; throws: boolean },
): Promise<void> {
  const wasFree = model.holder(of) === null
  const mine = new Error('mine')
  let grant: Grant | null = null
  const running = world.locks(by).runExclusive(of, async (lease) => {
    grant = world.keep(model, by, lease, 30_000)
    expect(await world.locks((by + 1) % 3).acquire(of)).toBeNull()
    if (throws) throw mine
    return lease.fence
  })
  if (wasFree && throws) await expect(running).rejects.toBe(mine)
  else if (wasFree)
    expect(await running).toEqual({ acquired: true, result: model.entry(of).fence, lost: false })
  else expect(await running).toEqual({ acquired: false })
  expect(grant === null).toBe(!wasFree)
  if (grant === null) return
  const { token } = grant as Grant
  model.released(of, token)
  ;(grant as Grant).mind = 'released'
  await world.handOver(model, of)
}

async function forceRelease(
  model: LockModel,
  world: LockWorld,
  choices: { process: number; key: string; immediate: boolean; sawStaleFence: boolean },
): Promise<void> {
  const { process: by, key: of, immediate, sawStaleFence } = choices
  const holder = model.holder(of)
  const fence = sawStaleFence ? 1 : undefined
  const outcome = await world.locks(by).forceRelease(of, { immediate, fence })
  if (holder === null) return expect(outcome).toBe('free')
  if (sawStaleFence) return expect(outcome).toBe('changed')
  expect(outcome).toBe(immediate ? 'released' : 'revoked')
  if (!immediate) {
    model.entry(of).isRevoked = true
    return
  }
  model.released(of, holder.token)
  await world.handOver(model, of)
}

async function look(model: LockModel, world: LockWorld, { process: by }: { process: number }): Promise<void> {
  const locks = world.locks(by)
  const listed = new Map((await locks.list()).map((info) => [info.key, info]))
  expect(listed.size).toBe(keys.filter((of) => model.holder(of) !== null).length)
  for (const of of keys) {
    const seen = await locks.peek(of)
    const holder = model.holder(of)
    expect(seen?.fence).toBe(holder?.fence)
    expect(listed.get(toStoredKey('key', of))?.fence).toBe(holder?.fence)
    if (seen === null || holder === null) continue
    expect(seen.revoked).toBe(model.entry(of).isRevoked)
    // To the nearest of the times that are asked for.
    expect(Math.round(seen.remainingMs / 30_000) * 30_000).toBe(holder.ttlMs)
    expect(JSON.stringify(seen)).not.toContain(holder.token)
  }
}

async function close(
  model: LockModel,
  world: LockWorld,
  { process: by }: { process: number },
): Promise<void> {
  const ended = leave(model, by)
  await world.replace(by, 'close')
  for (const waiting of ended.waited) await world.failedWait(waiting, 'CLOSED')
  for (const grant of ended.trusted) {
    grant.mind = 'knows it lost'
    model.released(grant.key, grant.token)
  }
  for (const of of keys) await world.handOver(model, of)
}

async function crash(
  model: LockModel,
  world: LockWorld,
  { process: by }: { process: number },
): Promise<void> {
  const ended = leave(model, by)
  await world.replace(by, 'crash')
  for (const grant of ended.trusted) grant.mind = 'dead'
  for (const of of keys) await world.handOver(model, of)
}

/** What ends with a process. */
function leave(model: LockModel, by: number) {
  const waited = model.waiting.filter(({ process: one }) => one === by)
  for (const waiting of waited) model.leaveLine(waiting)
  return { waited, trusted: model.grants.filter((grant) => grant.process === by && grant.mind === 'trusts') }
}

/** Nobody gives it back, and whoever waits for it has it when it has lapsed. */
async function dieBriefly(
  model: LockModel,
  world: LockWorld,
  { process: by, key: of }: { process: number; key: string },
): Promise<void> {
  const found = (await world.acquireBriefly(model, by, of)) as Lease
  const { token, fence } = found
  const grant: Grant = { key: of, process: by, token, fence, ttlMs: briefMs, mind: 'dead' }
  model.granted(grant)
  world.leases.set(grant, found)
  const heir = (by + 1) % 3
  const inheriting = world.locks(heir).acquire(of, { wait: Infinity, waitStep: 5, ttl: longMs })
  await crash(model, world, { process: by })
  const inherited = await within('a dead holder’s key is free', inheriting)
  model.lapsed(of)
  world.keep(model, heir, inherited as Lease, longMs)
}

/** What each holder says at any moment. */
export function expectBeliefs({ leases }: LockWorld): void {
  for (const [grant, lease] of leases) {
    if (grant.mind === 'dead') continue
    expect(lease.isHeld(), `whether ${grant.key}/${grant.fence} is held`).toBe(grant.mind === 'trusts')
    expect(lease.signal.aborted).toBe(grant.mind === 'knows it lost')
  }
}
