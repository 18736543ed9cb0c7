// One worker of the torture: a process that uses leases and runs tasks, writes down what it sees, and suffers faults.
import { hostname } from 'node:os'
import { connect, LockService, onEvent } from 'leasehold'
import { seededRandom } from 'leasehold/testing'
import {
  connectArguments,
  openClient,
  type OpenedClient,
  type OpenedLocks,
} from '../../test/programs/open-locks.ts'
import { watchEnd } from '../end-watch.ts'
import { Journal } from '../history/journal.ts'
import { now } from '../history/records.ts'
import { DeathWish } from './death-wish.ts'
import { disguise } from './disguise.ts'
import { LockWork } from './lock-work.ts'
import { MassWork } from './mass-work.ts'
import type { WorkerOrder, WorkerOrders } from './messages.ts'
import { plantedBugs } from './planted-bugs.ts'
import { ResourceClient, tell } from './resource-client.ts'
import { hostWall, SkewedClock } from './skewed-clock.ts'
import { TaskWork } from './task-work.ts'
import { Witness } from './witness.ts'

const orders = JSON.parse(process.argv[2] ?? '{}') as WorkerOrders
const { name, place, namespace, ttlMs, address, plant, edition } = orders
const wall = hostWall()
if (orders.disguised) disguise()
const journal = new Journal(orders.journal, name)
const random = seededRandom(orders.seed)
const skewed = new SkewedClock(orders.clock)
if (orders.clock.isWrong) skewed.takeOverDate()
const resource = new ResourceClient()
const witness = new Witness(journal, skewed)
const deathWish = new DeathWish()
const bug = plant === null ? undefined : plantedBugs[plant]

process.on('unhandledRejection', (reason) => journal.write({ is: 'unhandled', error: String(reason) }))
process.on('uncaughtException', (error) => {
  journal.write({ is: 'unhandled', error: String(error.stack) })
  process.exit(70)
})
process.on('message', (order: WorkerOrder) => obey(order))
// Whoever runs this is gone: nobody is left to read what it does.
process.on('disconnect', () => isLeaving || process.exit(0))
process.once('SIGTERM', () => void leave())

journal.write({
  is: 'begun',
  place,
  client: `${address.client} by ${address.by ?? 'application'}`,
  edition,
  wall,
  self: `${hostname()} ${process.pid}`,
})
let looking: NodeJS.Timeout | undefined
watchEvents()
watchLoop()
let isLeaving = false
let client: OpenedClient | undefined
let hasBegun = (): void => {}
const begun = new Promise<void>((resolve) => (hasBegun = resolve))
const { locks, end } = await open()
const used = bug?.locks?.(locks) ?? locks
const lockWork = new LockWork({ locks: used, orders, random, journal, witness, resource })
const taskWork = new TaskWork({ locks, orders, random, journal, witness, resource })
const massWork = new MassWork({ locks: used, journal, lockWork })
const working = lockWork.run()
hasBegun()
await taskWork.start().catch((error: unknown) => journal.write({ is: 'unhandled', error: String(error) }))
tell({ tell: 'ready' })

async function open(): Promise<OpenedLocks> {
  const service = {
    namespace,
    ttl: ttlMs,
    requestTimeout: orders.requestTimeoutMs,
    clock: bug?.clock?.(skewed) ?? skewed,
  }
  if (address.by === 'connect' && bug === undefined) {
    for (;;) {
      try {
        const connected = await connect(...connectArguments(address, service))
        return { locks: connected, end: () => connected.close() }
      } catch {
        // It starts in the middle of a fault: as a supervisor would, try again.
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
  }
  client = await openClient(address)
  const { driver: right, end: endClient } = client
  const driver = deathWish.around(bug?.driver?.(right, place) ?? right)
  const opened = new LockService({ ...service, driver })
  return { locks: opened, end: () => opened.close().then(endClient) }
}

function obey(order: WorkerOrder): void {
  switch (order.do) {
    case 'answer':
      return resource.hear(order)
    case 'block': {
      const until = performance.now() + order.ms
      while (performance.now() < until);
      return
    }
    case 'step-clock':
      return skewed.step(order.ms)
    case 'drift-clock':
      return skewed.drift(order.wallRate)
    case 'occupy-pool':
      return void client?.occupy(order.ms)
    case 'misbehave':
      return void begun.then(() => {
        lockWork.misbehave(order.ms)
        taskWork.misbehave(order.ms)
      })
    case 'crowd':
      return void begun.then(() => massWork.crowd(order))
    case 'hoard':
      return void begun.then(() => massWork.hoard(order))
    case 'die':
      return deathWish.at(order.at)
    case 'leave':
      return void leave()
  }
}

/** Ends everything in good order; then nothing of the library may keep the process alive. */
async function leave(): Promise<void> {
  if (isLeaving) return
  isLeaving = true
  await begun
  lockWork.stop()
  massWork.stop()
  await taskWork.stop()
  await Promise.race([working, new Promise((resolve) => setTimeout(resolve, 3_000).unref())])
  await end()
  bug?.atEnd?.()
  clearInterval(looking)
  journal.write({ is: 'closed' })
  watchEnd({ withinMs: 6_000, journal: orders.journal, by: name })
  tell({ tell: 'closed' })
  if (process.connected) process.disconnect()
}

function watchEvents(): void {
  onEvent('leasehold:refresh', ({ key, fence, remainingMs }) =>
    witness.confirmed(`lock:${key}`, fence, remainingMs),
  )
  onEvent('leasehold:lost', ({ key, fence, reason }) =>
    journal.write({ is: 'lost', of: `lock:${key}`, fence, reason }),
  )
}

/** Writes down when the event loop did not turn: a loss is signalled in the first turn afterwards. */
function watchLoop(): void {
  let turned = now()
  let told = turned
  looking = setInterval(() => {
    const at = now()
    if (at - turned > 25) journal.write({ is: 'gap', from: turned })
    if (at - told > 100) {
      journal.write({ is: 'turn' }, at)
      told = at
    }
    turned = at
  }, 10)
}
