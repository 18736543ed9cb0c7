// Processes that take turns: nobody overlaps, nothing is lost, whoever ends or comes next (N44, N26, M21, M38).
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { FencedFile } from '../programs/fenced-file.ts'
import { freshNamespace } from '../support/stores.ts'
import { addressOf, describeEach, everyClient, everyStore, openService, temporaryFolder } from './subjects.ts'
import { Worker } from './worker-process.ts'

await describeEach(everyStore, (client) => {
  test('three processes that take turns at one key lose no update, never overlap, and their fences rise', async () => {
    // Where nothing wakes a waiter it asks often, so that they do take turns.
    const service = { namespace: freshNamespace(), ttl: 5_000, waitStep: 2 }
    const settings = { address: await addressOf(client), service }
    const path = join(temporaryFolder(), 'counter')
    const rounds = 50
    const workers = await Promise.all([1, 2, 3].map(() => Worker.start(settings)))
    const done = await Promise.all(workers.map((worker) => worker.call('count', 'k', rounds, path)))

    const inTime = done
      .flat()
      .map(({ fence, from, to }) => ({ fence, from: BigInt(from), to: BigInt(to) }))
      .toSorted((a, b) => (a.from < b.from ? -1 : 1))
    expect(inTime).toHaveLength(3 * rounds)
    for (const [index, { fence, to }] of inTime.slice(0, -1).entries()) {
      const next = inTime[index + 1]!
      expect(next.from > to, 'the next holder begins when the one before has ended').toBe(true)
      expect(next.fence).toBeGreaterThan(fence)
    }
    expect(new FencedFile(path).read()).toEqual({ value: 3 * rounds, fence: inTime.at(-1)!.fence })
  })
})

await describeEach(everyClient, (client) => {
  test('a holder that closes on SIGTERM hands its key over at once and ends by itself (N44)', async () => {
    const address = await addressOf(client)
    const namespace = freshNamespace()
    const holder = await Worker.start({ address, service: { namespace, ttl: 60_000 } })
    await holder.call('closeOnSigterm')
    const fence = await holder.call('acquire', 'k')
    const locks = await openService(address, { namespace })
    const waiting = locks.acquire('k', { wait: 15_000 })
    waiting.catch(() => {})
    await expect.poll(async () => (await locks.peek('k'))?.awaited, { interval: 20 }).toBe(true)

    const before = performance.now()
    holder.signal('SIGTERM')
    const lease = await waiting
    expect(performance.now() - before).toBeLessThan(1_000)
    expect(lease!.fence).toBeGreaterThan(fence!)
    expect(await holder.ended).toBe(0)
    expect(holder.events('lost')).toEqual([{ event: 'lost', key: 'k', reason: 'closed' }])
    expect(lease!.isHeld()).toBe(true)
  })
})

await describeEach(everyStore, (client) => {
  test('eight acquires at once in one service share nothing: one grant, one token (N26, M38)', async () => {
    const locks = await openService(await addressOf(client))
    const answers = await Promise.all(Array.from({ length: 8 }, () => locks.acquire('k')))
    expect(answers.filter((lease) => lease !== null)).toHaveLength(1)

    const others = await Promise.all(Array.from({ length: 8 }, (_, index) => locks.acquire(`k${index}`)))
    expect(new Set(others.map((lease) => lease!.token)).size).toBe(8)
    expect(await others[0]!.release()).toBe('released')
    expect(others.slice(1).every((lease) => lease!.isHeld())).toBe(true)
  })

  test('at most one of eight waiters of one service works at a time (N26)', async () => {
    const locks = await openService(await addressOf(client))
    let [working, most, done] = [0, 0, 0]
    const work = async () => {
      most = Math.max(most, ++working)
      await new Promise((resolve) => setImmediate(resolve))
      working--
      done++
    }
    await Promise.all(Array.from({ length: 8 }, () => locks.runExclusive('k', work, { wait: 10_000 })))
    expect([done, most]).toEqual([8, 1])
  })

  test('processes of equal host name and pid are told apart by their instance (M21, M38)', async () => {
    const address = await addressOf(client)
    const namespace = freshNamespace()
    // As two containers would be: in one process, both describe themselves with the same host and pid.
    const [one, other] = [
      await openService(address, { namespace }),
      await openService(address, { namespace }),
    ]
    await one.acquire('k1')
    await other.acquire('k2')
    const [first, second] = (await one.list()).map(({ holder }) => holder)
    expect(second).toMatchObject({ host: first!.host, pid: first!.pid })
    expect(second!.instance).not.toBe(first!.instance)
    expect(await other.acquire('k1')).toBe(null)
  })
})
