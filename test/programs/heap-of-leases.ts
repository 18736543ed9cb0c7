// Prints how many bytes of heap a held lease keeps, and how many are left of it once it was released, with a driver that
// keeps nothing. Needs --expose-gc.
import { type Lease, LockService } from 'leasehold'
import type { Driver, LockDriver } from 'leasehold/driver'
import { memoryDriver } from 'leasehold/memory'

const count = 20_000

let fence = 0
const session = memoryDriver().open('heap')
const locks: Pick<LockDriver, 'acquire' | 'refresh' | 'release'> = {
  acquire: async (requests) =>
    requests.map(({ ttlMs }) => ({ outcome: 'granted', fence: 2 ** 40 + fence++, remainingMs: ttlMs })),
  refresh: async (requests) => requests.map(({ ttlMs }) => ({ outcome: 'held', remainingMs: ttlMs })),
  release: async (requests) => requests.map(() => ({ outcome: 'released' })),
}
const driver: Driver = {
  ...memoryDriver(),
  open: () => ({ ...session, locks: { ...session.locks, ...locks } }),
}

const service = new LockService({ driver })
const keys = Array.from({ length: count }, (_, index) => `lease:${index}`)
const acquireAll = () => Promise.all(keys.map((key) => service.acquire(key, { ttl: '30s' })))
const releaseAll = (leases: (Lease | null)[]) =>
  Promise.all(leases.splice(0).map(async (lease) => lease?.release()))

// What is made once, and grows to its size, is no lease's.
const first = await acquireAll()
await releaseAll(first)

const before = await heapUsed()
const leases = await acquireAll()
const held = await heapUsed()
const isHeld = leases.every((lease) => lease?.isHeld() === true)
await releaseAll(leases)
const after = await heapUsed()
console.log(JSON.stringify({ isHeld, perLease: (held - before) / count, left: (after - before) / count }))
await service.close()

async function heapUsed(): Promise<number> {
  if (gc === undefined) throw new Error('Run this with --expose-gc.')
  // What the last jobs and timers hold goes with the next turns.
  for (let turn = 0; turn < 3; turn++) {
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
    void gc()
  }
  return process.memoryUsage().heapUsed
}
