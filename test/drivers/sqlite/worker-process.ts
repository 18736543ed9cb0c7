// A process of its own that uses a SQLite file: bundled and started by processes.ts, told what to do by messages.
import { tmpdir } from 'node:os'
import { DriverFault } from '../../../src/core/errors.ts'
import type { DriverMissingError } from '../../../src/core/errors.ts'
import type { CallOptions, DriverSession } from '../../../src/driver/index.ts'
import { sqliteDriver } from '../../../src/drivers/sqlite/index.ts'

export type Order =
  /** Opens the file and reads, which creates the tables. */
  | { readonly kind: 'create'; readonly path: string }
  /** Takes the key and keeps it until the process is killed. */
  | { readonly kind: 'hold'; readonly path: string; readonly key: string; readonly ttlMs: number }
  /** Takes and releases the key over and over. */
  | { readonly kind: 'cycle'; readonly path: string; readonly key: string; readonly rounds: number }
  /** Makes a driver in a directory and on a Node.js without any SQLite library. */
  | { readonly kind: 'do-without'; readonly path: string }

export type Report =
  | { readonly kind: 'ready' }
  | { readonly kind: 'created' }
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }
  | { readonly kind: 'holding'; readonly fence: number }
  | { readonly kind: 'cycled'; readonly holds: readonly Hold[]; readonly retries: number }

/** One lease, as its holder saw it: from the answer of the grant to the request of the release, in ns since boot. */
export interface Hold {
  readonly fence: number
  readonly from: string
  readonly to: string
}

const call: CallOptions = { attempt: 1, lockedRows: 'skip' }
const holder = JSON.stringify({ pid: process.pid })
let retries = 0

process.on('message', (order: Order) => {
  void obey(order).then(report)
})
report({ kind: 'ready' })

async function obey(order: Order): Promise<Report> {
  if (order.kind === 'do-without') return doWithout(order.path)
  const session = sqliteDriver({ path: order.path }).open('test')
  switch (order.kind) {
    case 'create':
      await retried(() => session.locks.peek(['a'], call))
      return { kind: 'created' }
    case 'hold':
      return { kind: 'holding', fence: await take(session, order.key, 'held', order.ttlMs) }
    case 'cycle': {
      const holds: Hold[] = []
      for (let round = 0; round < order.rounds; round++) {
        const token = `${process.pid}-${round}`
        const fence = await take(session, order.key, token, 30_000)
        const from = process.hrtime.bigint()
        await nextTurn()
        const to = process.hrtime.bigint()
        await retried(() => session.locks.release([{ key: order.key, token }], call))
        holds.push({ fence, from: String(from), to: String(to) })
      }
      await session.close()
      return { kind: 'cycled', holds, retries }
    }
  }
}

function doWithout(path: string): Report {
  process.getBuiltinModule = () => undefined
  process.chdir(tmpdir())
  try {
    sqliteDriver({ path })
    throw new Error('A SQLite library was found.')
  } catch (error) {
    const { code, message } = error as DriverMissingError
    return { kind: 'refused', code, message }
  }
}

async function take(session: DriverSession, key: string, token: string, ttlMs: number): Promise<number> {
  const request = { key, token, ttlMs, holder, waitingMs: 0 }
  for (;;) {
    const [answer] = await retried(() => session.locks.acquire([request], call))
    if (answer?.outcome === 'granted') return answer.fence
    if (answer?.outcome !== 'held') throw new Error(`unexpected: ${JSON.stringify(answer)}`)
    await nextTurn()
  }
}

/** What the core does about a busy file, in short. */
async function retried<T>(calling: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await calling()
    } catch (error) {
      if (!(error instanceof DriverFault && error.kind === 'retry')) throw error
      retries += 1
      await nextTurn()
    }
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * 2))
}

function report(message: Report): void {
  process.send?.(message)
}
