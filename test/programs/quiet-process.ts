// One scenario of the in-process driver in a process of its own, which then does nothing more: what is left of it, and
// does the process end? Prints what is still active as JSON.
import { LockService } from 'leasehold'
import { memoryDriver } from 'leasehold/memory'
import type { Driver, LockDriver } from 'leasehold/driver'

const scenarios: Record<string, () => Promise<unknown>> = {
  'closed after all kinds of work': async () => {
    const driver = memoryDriver()
    const locks = new LockService({ driver, requestTimeout: 500 })
    const other = new LockService({ driver })
    const lease = await locks.acquire('held', { ttl: '1h' })
    await other.runExclusive('ran', () => {})
    const waiting = other
      .acquire('held', { wait: '10m' })
      .catch((error: unknown) => (error as { code: string }).code)
    await other.acquire('held', { wait: 20 })
    await lease?.extend('2h')
    await other.acquire('lost', { ttl: 100, heartbeat: false })
    await new Promise((resolve) => {
      setTimeout(resolve, 120)
    })
    await Promise.all([locks.close(), other.close()])
    return waiting
  },
  'closed while the store fails': async () => {
    const locks = new LockService({
      driver: broken(() => Promise.reject(new Error('ECONNREFUSED'))),
      requestTimeout: 200,
    })
    const codes = ['a', 'b'].map((key, index) =>
      locks
        .acquire(key, { wait: index * 100_000 })
        .catch((error: unknown) => (error as { code: string }).code),
    )
    await codes[0]
    await locks.close()
    return Promise.all(codes)
  },
  'closed while the store hangs': async () => {
    const locks = new LockService({ driver: broken(() => new Promise(() => {})), requestTimeout: 100 })
    const code = locks.acquire('a').catch((error: unknown) => (error as { code: string }).code)
    await locks.close()
    return code
  },
  'holds a lease, and nobody closes anything': async () => {
    const locks = new LockService({ driver: memoryDriver(), ttl: '1h' })
    const lease = await locks.acquire('held')
    return lease?.isHeld()
  },
  'holds leases and has waited, and nobody closes anything': async () => {
    const driver = memoryDriver()
    const [locks, other] = [new LockService({ driver }), new LockService({ driver })]
    await locks.acquire('held', { ttl: '40d' })
    await locks.acquire('also held', { ttl: 300, heartbeat: 50 })
    return other.acquire('held', { wait: 30 })
  },
  'waits, which is something to live for': async () => {
    const driver = memoryDriver()
    const [locks, other] = [new LockService({ driver }), new LockService({ driver })]
    await locks.acquire('held', { ttl: 400, heartbeat: false })
    const lease = await other.acquire('held', { wait: Infinity })
    return lease?.isHeld()
  },
}

/** A driver whose every call does this. */
function broken(answer: () => Promise<never>): Driver {
  const inner = memoryDriver()
  return {
    ...inner,
    open: (namespace) => {
      const session = inner.open(namespace)
      const verbs = Object.keys(session.locks).map((verb) => [verb, answer] as const)
      return { ...session, locks: Object.fromEntries(verbs) as unknown as LockDriver, listen: answer }
    },
  }
}

process.on('unhandledRejection', (reason) => {
  console.error('unhandled rejection', reason)
  process.exit(1)
})

const scenario = scenarios[process.argv[2] ?? '']
if (scenario === undefined) throw new Error(`There is no scenario ${process.argv[2]}.`)
const result = await scenario()
// Pipes to the parent are its own; of ours there would be timers, above all.
const active = process.getActiveResourcesInfo().filter((kind) => !/Pipe|TTY/i.test(kind))
console.log(JSON.stringify({ result, active }))
