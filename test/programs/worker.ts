// A process of its own that uses a store: started and told what to do by test/faults/worker-process.ts.
import { type AcquireOptions, type Lease, type LockServiceOptions, onEvent } from 'leasehold'
import { type Awakening, block, spinUntilThere, wakeUp } from './awakening.ts'
import { FencedFile } from './fenced-file.ts'
import { openLocks, type StoreAddress } from './open-locks.ts'

/** Its first argument, as JSON. */
export interface WorkerSettings {
  readonly address: StoreAddress
  readonly service: Pick<LockServiceOptions, 'namespace' | 'ttl' | 'requestTimeout' | 'waitStep'>
}

/** What it can be told to do. */
export interface WorkerAbilities {
  /** @returns the fence, or null if the key is held */
  acquire(key: string, options?: AcquireOptions): Promise<number | null>
  /** Begins to wait for the key, and writes to the file when it has it. */
  waitAndWrite(key: string, path: string): Promise<void>
  release(key: string): Promise<string>
  isHeld(key: string): Promise<boolean>
  /** Takes and releases the key over and over, adding 1 to the value in the file each time. */
  count(key: string, rounds: number, path: string): Promise<Round[]>
  /**
   * Says `pausing`, keeps its event loop busy for so many milliseconds or until the file is there, and looks.
   *
   * @param asks whether it asks its lease at once, or only listens to the signal
   */
  pause(key: string, until: number | string, asks: boolean, resource: string): Promise<Awakening>
  close(): Promise<void>
  /** Lets go of its starter: what keeps it alive from here on was left behind by somebody. */
  leave(): Promise<void>
  /** From here on it closes and leaves when it gets the signal. */
  closeOnSigterm(): Promise<void>
}

/** One lease as its holder saw it: from the answer of the grant to the call of the release, in ns since boot. */
export interface Round {
  readonly fence: number
  readonly from: string
  readonly to: string
}

/** What it tells by itself. */
export type WorkerEvent =
  | { readonly event: 'ready' }
  | { readonly event: 'pausing' }
  | { readonly event: 'lost'; readonly key: string; readonly reason: string }

export interface WorkerOrder {
  readonly id: number
  readonly name: keyof WorkerAbilities
  readonly args: readonly unknown[]
}

export type WorkerAnswer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: { readonly code: string; readonly message: string } }

const { address, service } = JSON.parse(process.argv[2] ?? '{}') as WorkerSettings
const { locks, end } = await openLocks(address, service)
const leases = new Map<string, Lease>()

const abilities: WorkerAbilities = {
  async acquire(key, options = {}) {
    const lease = await locks.acquire(key, options)
    if (lease !== null) leases.set(key, lease)
    return lease?.fence ?? null
  },

  async waitAndWrite(key, path) {
    void locks
      .acquire(key, { wait: Infinity })
      .then((lease) => new FencedFile(path).write(lease?.fence ?? -1, 1))
  },

  async release(key) {
    return leaseOf(key).release()
  },

  async isHeld(key) {
    return leaseOf(key).isHeld()
  },

  async count(key, rounds, path) {
    const file = new FencedFile(path)
    const done: Round[] = []
    while (done.length < rounds) {
      const lease = await locks.acquire(key, { wait: Infinity })
      if (lease === null) throw new Error('A wait without end ended.')
      const from = String(process.hrtime.bigint())
      const { value } = file.read()
      await new Promise((resolve) => setImmediate(resolve))
      if (!file.write(lease.fence, value + 1)) throw new Error(`The fence ${lease.fence} was refused.`)
      const to = String(process.hrtime.bigint())
      await lease.release()
      done.push({ fence: lease.fence, from, to })
    }
    return done
  },

  async pause(key, until, asks, resource) {
    const pause = () => {
      // Node.js writes a short message at once, before the loop is kept busy.
      void tell({ event: 'pausing' })
      if (typeof until === 'number') block(until)
      else spinUntilThere(until)
    }
    return wakeUp(leaseOf(key), new FencedFile(resource), pause, asks)
  },

  close: end,

  async leave() {
    // After the answer to this has been sent.
    setImmediate(() => process.disconnect())
  },

  async closeOnSigterm() {
    process.once('SIGTERM', () => void end().then(abilities.leave))
  },
}

onEvent('leasehold:lost', ({ key, reason }) => void tell({ event: 'lost', key, reason }))
process.on('message', (order: WorkerOrder) => void obey(order))
await tell({ event: 'ready' })

async function obey({ id, name, args }: WorkerOrder): Promise<void> {
  try {
    const ability = abilities[name] as (...args: readonly unknown[]) => Promise<unknown>
    await tell({ id, value: await ability(...args) })
  } catch (error) {
    const { code, message } = error as { code?: unknown; message?: unknown }
    await tell({ id, error: { code: String(code), message: String(message) } })
  }
}

function leaseOf(key: string): Lease {
  const lease = leases.get(key)
  if (lease === undefined) throw new Error(`${key} was not acquired here.`)
  return lease
}

function tell(message: WorkerEvent | WorkerAnswer): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) return resolve()
    process.send(message, () => resolve())
  })
}
