import { onEvent } from 'leasehold'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Fleet } from './fleet.ts'

describe('a task with a lock', () => {
  it('holds it while its handler runs, and gives it back even if that throws (C5)', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('books', { every: '1m', lock: 'ledger' }, async ({ slot }) => {
      await fleet.time.sleep(5_000)
      if (fleet.seconds(slot) === 120) throw new Error('no ink')
    })
    await fleet.start(node)
    for (const minute of [60, 120]) {
      await fleet.advanceTo(Date.parse('2026-01-01') + minute * 1_000 + 1_000)
      const held = await fleet.time.until(node.locks.peek('ledger'))
      expect(held?.holder.label).toBe('books')
      await fleet.advance(6_000)
      expect(await fleet.time.until(node.locks.peek('ledger'))).toBeNull()
    }
    expect(await fleet.history('books')).toEqual(['60/1 succeeded', '120/1 failed'])
  })

  it('skips its slot if another holds the lock, which is recorded with its name and its holder (C7)', async () => {
    const fleet = new Fleet()
    const [node, other] = [fleet.node(), fleet.node()]
    const told: unknown[] = []
    onTestFinished(
      onEvent('leasehold:slot', ({ reason, error }) => void (reason === 'lock' && told.push(error))),
    )
    node.runs('books', { every: '1m', lock: 'ledger' })
    await fleet.start(node)
    const lease = await fleet.time.until(other.locks.acquire('ledger', { label: 'audit' }))
    await fleet.advance(61_000)
    expect(fleet.notes).toEqual([])
    expect(await fleet.history('books')).toEqual(['60/1 skipped lock'])
    const [entry] = await fleet.entries('books')
    expect(entry?.error).toMatch(/"ledger" is held by "audit", host .+, process \d+/)
    expect(told).toEqual([entry?.error])
    await fleet.time.until(lease!.release())
    await fleet.advance(60_000)
    expect(await fleet.history('books')).toEqual(['60/1 skipped lock', '120/1 succeeded'])
  })

  it('waits for the lock as long as lockWait says, under the lease of its run (C4)', async () => {
    const fleet = new Fleet()
    const [node, other] = [fleet.node(), fleet.node()]
    node.runs('patient', { every: '1m', lock: 'ledger', lockWait: '20s', ttl: '3s' })
    node.runs('hasty', { every: '1m', lock: 'ledger', lockWait: '5s', ttl: '3s' })
    await fleet.start(node)
    const lease = await fleet.time.until(other.locks.acquire('ledger'))
    await fleet.advance(70_000)
    await fleet.time.until(lease!.release())
    await fleet.advance(1_000)
    expect(await fleet.history('patient')).toEqual(['60/1 succeeded'])
    expect(await fleet.history('hasty')).toEqual(['60/1 skipped lock'])
  })

  it('of two that share one in one tick of a node, the one registered first runs and the other skips (C6)', async () => {
    for (const names of [
      ['a', 'b'],
      ['b', 'a'],
    ]) {
      const fleet = new Fleet()
      const node = fleet.node()
      for (const name of names) {
        node.runs(name, { every: '1m', lock: 'shared' }, () => fleet.time.sleep(100))
      }
      await fleet.start(node)
      await fleet.advance(181_000)
      expect(fleet.notes.map(({ task }) => task)).toEqual([names[0], names[0], names[0]])
      expect(await fleet.history(names[1]!)).toEqual([
        '60/1 skipped lock',
        '120/1 skipped lock',
        '180/1 skipped lock',
      ])
      await fleet.end()
    }
  })

  it('that is lost while the handler runs aborts it: abandoned, lock', async () => {
    const fleet = new Fleet()
    const [node, operator] = [fleet.node(), fleet.node()]
    node.runs('books', { every: '1h', lock: 'ledger', lockTtl: '6s' }, ({ signal }) => {
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error))
      })
    })
    await fleet.start(node)
    await fleet.advance(3_601_000)
    await fleet.time.until(operator.locks.forceRelease('ledger'))
    await fleet.advance(3_000)
    expect(await fleet.history('books')).toEqual(['3600/1 abandoned lock'])
  })

  it('cannot be acquired again inside the handler, which is told so at once', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('books', { every: '1m', lock: 'ledger' }, () => node.locks.acquire('ledger', { wait: '1h' }))
    await fleet.start(node)
    await fleet.advance(61_000)
    const [entry] = await fleet.entries('books')
    expect(entry).toMatchObject({ state: 'failed', error: expect.stringContaining('already held') as string })
  })

  it('is recorded as failed if it could not be found out who holds it', async () => {
    const fleet = new Fleet()
    const node = fleet.node({ requestTimeout: 500 })
    node.runs('books', { every: '1m', lock: 'ledger', lockWait: '5s' })
    node.runs('own', { every: '1m' })
    await fleet.start(node)
    const { locks } = node
    locks.acquire = () => Promise.reject(new Error('the store of locks is down'))
    await fleet.advance(61_000)
    expect(await fleet.history('books')).toEqual(['60/1 failed'])
    expect(await fleet.history('own')).toEqual(['60/1 succeeded'])
  })
})
