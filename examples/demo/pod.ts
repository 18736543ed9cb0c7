// One "pod": a process that runs the same code as its siblings, on the same store.
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Cron } from 'croner'
import { type Clock, connect, onEvent, systemClock, TaskScheduler } from 'leasehold'
import {
  cron,
  type JournalLine,
  type PodMessage,
  type PodOrders,
  taskName,
  ttlMs,
  workMs,
} from './messages.ts'

const orders = JSON.parse(process.argv[2] ?? '{}') as PodOrders
const { url, namespace, pod, lateMs, journal } = orders

/** A pod whose event loop, or clock, is behind. */
const lateClock: Clock = {
  ...systemClock,
  setTimer: (delayMs, callback, options) => systemClock.setTimer(delayMs + lateMs, callback, options),
}

async function main(): Promise<void> {
  const locks = await connect(url, {
    namespace,
    clock: lateMs > 0 ? lateClock : systemClock,
    requestTimeout: '2s',
  })
  const tasks = new TaskScheduler({ locks })

  tasks.schedule(taskName, { cron, onCrash: 'retry', ttl: ttlMs }, async ({ slot, attempt, fence }) => {
    const at = slot.getTime()
    write({ pod, what: 'started', slot: at, attempt })
    tell({ kind: 'started', slot: at, attempt, fence })
    // A second attempt finds most of the work done.
    await sleep(attempt === 1 ? workMs(at) : 5)
    write({ pod, what: 'finished', slot: at, attempt })
    tell({ kind: 'finished', slot: at, attempt, fence })
  })

  onEvent('leasehold:slot', ({ slot, outcome }) => tell({ kind: 'decided', slot, outcome }))

  // What a team has before: the same cron with nothing around it.
  const unprotected = new Cron(cron, { paused: true }, () => {
    const slot = Math.round(Date.now() / 1000) * 1000
    setTimeout(() => {
      write({ pod, what: 'unprotected', slot, attempt: 0 })
      tell({ kind: 'unprotected', slot })
    }, lateMs)
  })

  process.once('SIGTERM', () => void drain())
  async function drain(): Promise<void> {
    unprotected.stop()
    await tasks.stop({ drain: '5s' })
    await locks.close()
    process.disconnect()
  }

  await tasks.start()
  unprotected.resume()
  tell({ kind: 'ready' })
}

function tell(message: PodMessage): void {
  if (process.connected) process.send?.(message)
}

function write(line: JournalLine): void {
  appendFileSync(journal, `${JSON.stringify(line)}\n`)
}

// The parent is gone: nobody watches any more.
process.on('disconnect', () => process.exit())
main().catch((error: unknown) => {
  tell({ kind: 'failed', message: error instanceof Error ? error.message : String(error) })
  process.exit(1)
})
