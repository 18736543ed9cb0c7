import { describe, expect, it, vi } from 'vitest'
import { freshNamespace, isAvailable, redisUrl } from '../support/stores.ts'
import { startExample } from './example.ts'

describe.skipIf(!(await isAvailable('redis')))('the example with node-cron', () => {
  it('runs each slot in one of its processes, and ends its work before it ends (D1, N45)', async () => {
    const environment = { LEASEHOLD_URL: await redisUrl(), LEASEHOLD_NAMESPACE: freshNamespace() }
    const fleet = [1, 2, 3].map(() => startExample('node-cron', environment))
    await Promise.all(fleet.map((each) => each.line(/^ready$/)))
    const counted = () => fleet.flatMap(({ lines }) => lines).filter((line) => line.startsWith('counted'))
    await vi.waitFor(() => expect(counted().length).toBeGreaterThanOrEqual(5), { timeout: 30_000 })
    expect(new Set(counted()).size).toBe(counted().length)

    const sending = await Promise.race(
      fleet.map(async (each) => [each, await each.line(/^sending/)] as const),
    )
    const [sender] = sending
    const exits = await Promise.all(fleet.map((each) => each.terminate()))
    expect(exits).toEqual([0, 0, 0])
    const begun = sender.lines.filter((line) => line.startsWith('sending')).map((line) => line.slice(-24))
    const done = sender.lines.filter((line) => line.startsWith('sent')).map((line) => line.slice(-24))
    expect(done).toEqual(begun)
    const all = fleet.flatMap(({ lines }) => lines).filter((line) => line.startsWith('sending'))
    expect(new Set(all).size).toBe(all.length)
  })

  it('goes on one ttl after the process that ran a job was killed (D2)', async () => {
    const environment = {
      LEASEHOLD_URL: `${await redisUrl()}?ttl=1s`,
      LEASEHOLD_NAMESPACE: freshNamespace(),
    }
    const fleet = [1, 2].map(() => startExample('node-cron', environment))
    const sender = await Promise.race(fleet.map((each) => each.line(/^sending/).then(() => each)))
    sender.kill()
    const other = fleet.find((each) => each !== sender)
    expect(await other?.line(/^sent/)).toBeDefined()
    expect(await other?.terminate()).toBe(0)
  })
})
