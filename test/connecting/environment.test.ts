import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { connect, InvalidOptionError } from 'leasehold'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Report } from '../programs/by-environment.ts'
import { programPath } from '../support/programs.ts'
import { freshNamespace, freshPostgresUrl, isAvailable, redisUrl } from '../support/stores.ts'

interface Application {
  readonly isMine: Promise<boolean>
  readonly slots: number[]
  end(): Promise<unknown>
}

/** The same program, started with nothing but another environment. */
function start(environment: Record<string, string>): Application {
  const env = { PATH: process.env['PATH'] ?? '', ...environment }
  const child: ChildProcess = fork(programPath('by-environment'), [], { env })
  onTestFinished(() => void child.kill('SIGKILL'))
  const slots: number[] = []
  const isMine = new Promise<boolean>((resolve, reject) => {
    child.on('message', (report: Report) => {
      if (report.event === 'lock') resolve(report.isMine)
      else slots.push(report.slot)
    })
    child.once('exit', (code) => reject(new Error(`It ended with ${String(code)}.`)))
  })
  return {
    isMine,
    slots,
    end: async () => {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      return (await ended)[0] as unknown
    },
  }
}

/** Two processes, until each could have run some slots: how many got the lock, and how many slots ran twice. */
async function startTwo(environments: readonly [Record<string, string>, Record<string, string>]) {
  const fleet = environments.map(start)
  const held = await Promise.all(fleet.map(({ isMine }) => isMine))
  const both = () => fleet.map(({ slots }) => slots)
  await vi.waitFor(() => expect(new Set(both().flat()).size).toBeGreaterThanOrEqual(6), { timeout: 20_000 })
  const [one = [], other = []] = both()
  const ranTwice = one.filter((slot) => other.includes(slot)).length
  const exits = await Promise.all(fleet.map(({ end }) => end()))
  return { held: held.filter(Boolean).length, ranTwice, exits }
}

const [hasRedis, hasPostgres] = [await isAvailable('redis'), await isAvailable('postgres')]

describe('the same program, by its environment alone (B7),', () => {
  it('guards one process without anything set', async () => {
    const { held, ranTwice, exits } = await startTwo([{}, {}])
    expect([held, exits]).toEqual([2, [0, 0]])
    expect(ranTwice).toBeGreaterThan(0)
  })

  it.skipIf(!hasRedis)('guards the fleet on Redis', async () => {
    const environment = { LEASEHOLD_URL: await redisUrl(), LEASEHOLD_NAMESPACE: freshNamespace() }
    expect(await startTwo([environment, environment])).toEqual({ held: 1, ranTwice: 0, exits: [0, 0] })
  })

  it.skipIf(!hasPostgres)('guards the fleet on PostgreSQL', async () => {
    const environment = { LEASEHOLD_URL: await freshPostgresUrl(), LEASEHOLD_NAMESPACE: freshNamespace() }
    expect(await startTwo([environment, environment])).toEqual({ held: 1, ranTwice: 0, exits: [0, 0] })
  })

  it.skipIf(!hasRedis)('keeps two environments on one store apart', async () => {
    const url = { LEASEHOLD_URL: await redisUrl() }
    const one = { ...url, LEASEHOLD_NAMESPACE: freshNamespace() }
    const { held } = await startTwo([one, { ...url, LEASEHOLD_NAMESPACE: freshNamespace() }])
    expect(held).toBe(2)
  })
})

describe('connect()', () => {
  it('goes by what it is told before it goes by the environment', async () => {
    vi.stubEnv('LEASEHOLD_URL', 'nonsense:')
    vi.stubEnv('LEASEHOLD_NAMESPACE', 'from the environment')
    const store = `memory:${freshNamespace()}`
    const services = [
      await connect(`${store}?namespace=from-the-url`),
      await connect(store, { namespace: 'from-the-url' }),
      await connect(store),
      await connect(store, { namespace: 'from the environment' }),
    ]
    onTestFinished(async () => {
      await Promise.all(services.map((locks) => locks.close()))
    })
    const granted: boolean[] = []
    for (const locks of services) granted.push((await locks.acquire('key')) !== null)
    expect(granted).toEqual([true, false, true, false])
  })

  it('refuses to start in production without a URL, and with an empty one anywhere', async () => {
    vi.stubEnv('LEASEHOLD_URL', undefined)
    vi.stubEnv('NODE_ENV', 'production')
    const refused = expect(connect()).rejects
    await refused.toThrow(InvalidOptionError)
    await refused.toThrow('Set LEASEHOLD_URL, to memory: if that is meant')
    vi.stubEnv('NODE_ENV', 'development')
    vi.stubEnv('LEASEHOLD_URL', '')
    await expect(connect()).rejects.toThrow('is the environment variable set?')
    vi.stubEnv('LEASEHOLD_URL', 'memory:')
    vi.stubEnv('NODE_ENV', 'production')
    await (await connect()).close()
  })
})
