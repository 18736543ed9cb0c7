import { describe, expect, it, onTestFinished } from 'vitest'
import { startRedis } from '../support/servers.ts'
import { freshNamespace, isAvailable, redisUrl } from '../support/stores.ts'
import { startExample, type Example } from './example.ts'

interface Answer {
  readonly status: number
  readonly body: { readonly fence?: number; readonly error?: string }
}

async function post(service: Example, id: string): Promise<Answer> {
  const port = (await service.line(/^listening/)).split(' ').at(-1)
  const response = await fetch(`http://127.0.0.1:${port}/reports/${id}`, { method: 'POST' })
  return { status: response.status, body: (await response.json()) as Answer['body'] }
}

describe.skipIf(!(await isAvailable('redis')))('the example with Express', () => {
  const start = async (reportMs: number, url?: string): Promise<Example> =>
    startExample('express', {
      LEASEHOLD_URL: url ?? (await redisUrl()),
      LEASEHOLD_NAMESPACE: namespace,
      REPORT_MS: String(reportMs),
    })
  const namespace = freshNamespace()

  it('answers 409 while another process does the work, and 201 again afterwards (A4)', async () => {
    const [one, other] = [await start(3_000), await start(0)]
    await other.line(/^listening/)
    const first = post(one, '42')
    await one.line(/^writing report 42/)
    const second = await post(other, '42')
    expect([second.status, second.body.error]).toEqual([409, expect.stringContaining('being written')])
    expect((await post(other, '43')).status).toBe(201)
    const { status, body } = await first
    expect([status, body.fence]).toEqual([201, expect.any(Number)])
    expect((await post(other, '42')).body.fence).toBeGreaterThan(body.fence ?? Infinity)
  })

  it('answers what is under way before it ends, and holds nothing then (N44)', async () => {
    const [leaving, other] = [await start(1_000), await start(0)]
    await other.line(/^listening/)
    const answer = post(leaving, '44')
    await leaving.line(/^writing report 44/)
    const ended = leaving.terminate()
    expect((await answer).status).toBe(201)
    expect(await ended).toBe(0)
    expect((await post(other, '44')).status).toBe(201)
  })

  it('answers 503 when the store is down: that is neither free nor held (N19)', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const service = await start(0, redis.url)
    expect((await post(service, '45')).status).toBe(201)
    await redis.stop()
    expect((await post(service, '45')).status).toBe(503)
  })
})
