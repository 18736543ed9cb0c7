import { afterEach, describe, expect, it, vi } from 'vitest'
import { ProgramMissingError } from '../../scripts/servers/programs.mjs'
import { askBroker, startBroker, type ServerBroker } from './server-broker.ts'

describe('the broker of the shared servers', () => {
  let broker: ServerBroker | undefined
  const closed: string[] = []
  const starts = {
    redis: vi.fn(async () => ({ url: 'redis://here', close: async () => void closed.push('redis') })),
    postgres: vi.fn(async () => Promise.reject(new ProgramMissingError('postgres'))),
    pgbouncer: vi.fn(async (urlOf: (store: 'redis') => Promise<string>) => ({
      url: `in front of ${await urlOf('redis')}`,
      close: async () => void closed.push('pgbouncer'),
    })),
  }

  afterEach(() => broker?.close())

  it('starts a server when it is first asked for, once, and ends it when it is closed', async () => {
    broker = await startBroker(starts)
    const { port } = broker
    expect(starts.redis).not.toHaveBeenCalled()
    const answers = await Promise.all([askBroker(port, 'redis'), askBroker(port, 'redis')])
    expect(answers).toEqual([{ url: 'redis://here' }, { url: 'redis://here' }])
    expect(starts.redis).toHaveBeenCalledTimes(1)
    await broker.close()
    expect(closed).toEqual(['redis'])
  })

  it('starts what a server stands in front of as well', async () => {
    broker = await startBroker(starts)
    expect(await askBroker(broker.port, 'pgbouncer')).toEqual({ url: 'in front of redis://here' })
  })

  it('names the missing program and remembers it, where that is tolerated', async () => {
    vi.stubEnv('CI', '')
    broker = await startBroker(starts)
    expect(await askBroker(broker.port, 'postgres')).toEqual({
      missing: expect.stringMatching(/postgres is not installed.*apt-get install postgresql/) as unknown,
    })
    expect(broker.missing.size).toBe(1)
  })

  it('answers an error with CI=true: nothing is left out in silence', async () => {
    vi.stubEnv('CI', 'true')
    broker = await startBroker(starts)
    expect(await askBroker(broker.port, 'postgres')).toEqual({
      error: expect.stringContaining('postgres is not installed') as unknown,
    })
    expect(broker.missing.size).toBe(0)
  })
})
