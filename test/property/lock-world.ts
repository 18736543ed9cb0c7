import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { type Lease, LockService } from 'leasehold'
import type { Driver, DriverSession } from 'leasehold/driver'
import type { ContractStore, RawStore } from 'leasehold/testing'
import { toStoredKey } from '../../src/core/stored-key.ts'
import { CuttableLink } from './cuttable-link.ts'
import type { Grant, LockModel, Waiting } from './lock-model.ts'

/** Long enough that nothing lapses which is not meant to. */
export const longMs = 60_000
/** For leases that are meant to. */
export const briefMs = 150
/** Everything that is waited for happens much sooner. */
const patienceMs = 8_000

interface Process {
  readonly link: CuttableLink
  readonly locks: LockService
}

interface Pending {
  readonly lease: Promise<Lease | null>
  readonly controller: AbortController
}

/** Three processes on two connections of a real store, and somebody who talks to the driver itself. */
export class LockWorld {
  readonly stranger: DriverSession
  readonly leases = new Map<Grant, Lease>()
  readonly #namespace = `model-${randomBytes(8).toString('hex')}`
  readonly #drivers: readonly Driver[]
  readonly #raw: RawStore | undefined
  readonly #processes: Process[]
  readonly #pending = new Map<number, Pending>()

  constructor({ first, second, raw }: ContractStore) {
    this.#drivers = [first, second, first]
    this.#raw = raw
    this.#processes = this.#drivers.map((driver) => this.#startProcess(driver))
    this.stranger = second.open(this.#namespace)
  }

  locks(process: number): LockService {
    return (this.#processes[process] as Process).locks
  }

  async forget(key: string): Promise<void> {
    await this.#raw?.forgetKey?.(this.#namespace, toStoredKey('key', key))
  }

  /** Nothing is under way between the processes and the store. */
  async quiet(): Promise<void> {
    for (const { link } of this.#processes) await link.quiet()
  }

  keep(model: LockModel, process: number, lease: Lease, ttlMs: number): Grant {
    const { key, token, fence } = lease
    const grant: Grant = { key, process, token, fence, ttlMs, mind: 'trusts' }
    model.granted(grant)
    this.leases.set(grant, lease)
    expect(lease.isHeld()).toBe(true)
    return grant
  }

  /**
   * For a lease that is meant to lapse. A busy machine can let this process stand still for longer than that: the answer is
   * then that it could not be found out, and the key is free again.
   */
  async acquireBriefly(model: LockModel, process: number, key: string): Promise<Lease | null> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.locks(process).acquire(key, { ttl: briefMs, heartbeat: false })
      } catch (error) {
        if ((error as { code?: string }).code !== 'STORE_UNAVAILABLE' || tries === 20) throw error
        expect(model.holder(key)).toBeNull()
        await this.quiet()
        model.givenBack(key)
      }
    }
  }

  startWaiting({ id, key, process }: Waiting): void {
    const controller = new AbortController()
    const { signal } = controller
    const lease = this.locks(process).acquire(key, { wait: Infinity, waitStep: 5, ttl: longMs, signal })
    // Whoever waits for it hears of it.
    lease.catch(() => {})
    this.#pending.set(id, { lease, controller })
  }

  async cancelWait({ id }: Waiting): Promise<void> {
    const { lease, controller } = this.#pending.get(id) as Pending
    const reason = new Error('not any more')
    controller.abort(reason)
    await expect(lease).rejects.toBe(reason)
  }

  /** The wait ends with an error. */
  async failedWait({ id }: Waiting, code: string): Promise<void> {
    await expect((this.#pending.get(id) as Pending).lease).rejects.toMatchObject({ code })
  }

  /** As long as the key is free, it goes to one of those who wait, and to the first one of that process. */
  async handOver(model: LockModel, key: string): Promise<void> {
    await this.quiet()
    while (model.holder(key) === null && model.entry(key).line.length > 0) {
      const asking = model.askers(key)
      const won = asking.map(async (waiting) => {
        const { lease } = this.#pending.get(waiting.id) as Pending
        return { waiting, lease: await lease }
      })
      const winner = await within(`somebody who waits for ${key} gets it`, Promise.race(won))
      model.leaveLine(winner.waiting)
      expect(winner.lease, 'a wait without an end').not.toBeNull()
      this.keep(model, winner.waiting.process, winner.lease as Lease, longMs)
      await this.quiet()
    }
    await this.#assertStillWaiting(model, key)
  }

  /** Whoever looks is told that the key is free. */
  async untilFree(key: string): Promise<void> {
    const look = async (): Promise<void> => {
      while ((await this.locks(1).peek(key)) !== null) await pause(4)
    }
    await within(`${key} is free`, look())
  }

  /** Resolves with how the `close()` went. Somebody new takes its place. */
  async replace(process: number, how: 'close' | 'crash'): Promise<void> {
    const { link, locks } = this.#processes[process] as Process
    await this.quiet()
    if (how === 'crash') link.cut()
    await within('close()', locks.close())
    this.#processes[process] = this.#startProcess(this.#drivers[process] as Driver)
  }

  async close(): Promise<void> {
    await Promise.all(this.#processes.map(({ locks }) => locks.close()))
    await this.stranger.close()
  }

  #startProcess(driver: Driver): Process {
    const link = new CuttableLink(driver)
    return { link, locks: new LockService({ driver: link.driver, namespace: this.#namespace }) }
  }

  async #assertStillWaiting(model: LockModel, key: string): Promise<void> {
    const still = Symbol('still waiting')
    for (const { id } of model.entry(key).line) {
      const { lease } = this.#pending.get(id) as Pending
      expect(await Promise.race([lease, Promise.resolve(still)])).toBe(still)
    }
  }
}

/** It is waited for what happens, not for a time; only a failure takes so long. */
export async function within<Value>(what: string, promise: Promise<Value>): Promise<Value> {
  const controller = new AbortController()
  const { signal } = controller
  const limit = pause(patienceMs, null, { signal, ref: false }).then(
    () => Promise.reject(new Error(`In vain: ${what}.`)),
    () => new Promise<never>(() => {}),
  )
  try {
    return await Promise.race([promise, limit])
  } finally {
    controller.abort()
  }
}
