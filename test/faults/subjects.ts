// The stores and clients that each scenario runs against.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LockService, LockServiceOptions } from 'leasehold'
import { describe, onTestFinished } from 'vitest'
import { type ClientName, openLocks, type StoreAddress } from '../programs/open-locks.ts'
import { freshNamespace, freshPostgresUrl, isAvailable, redisUrl, type Store } from '../support/stores.ts'

/** One client for each store: for what does not depend on the client. */
export const everyStore: readonly ClientName[] = ['sqlite', 'pg', 'ioredis']
export const everyClient: readonly ClientName[] = ['sqlite', 'pg', 'postgres.js', 'ioredis', 'node-redis']

export function serverOf(client: ClientName): Store | null {
  if (client === 'sqlite') return null
  return client === 'pg' || client === 'postgres.js' ? 'postgres' : 'redis'
}

/** Declares the tests of one scenario for each client whose store is to be had. */
export async function describeEach(
  clients: readonly ClientName[],
  scenario: (client: ClientName) => void,
): Promise<void> {
  for (const client of clients) {
    const server = serverOf(client)
    describe.skipIf(server !== null && !(await isAvailable(server)))(client, () => scenario(client))
  }
}

const addresses = new Map<Store | 'sqlite', Promise<string>>()

/** A store that this test file has to itself, or shares by namespaces. */
export async function addressOf(client: ClientName): Promise<StoreAddress> {
  if (client === 'sqlite') return { client, url: join(temporaryFolder(), 'locks.db') }
  const server = serverOf(client) ?? 'redis'
  const url = addresses.get(server) ?? (server === 'redis' ? redisUrl() : freshPostgresUrl())
  addresses.set(server, url)
  return { client, url: await url }
}

/** Removed when the test has ended. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-faults-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

/** A service in this process, with a client of its own; both are closed when the test has ended. */
export async function openService(
  address: StoreAddress,
  options: Omit<LockServiceOptions, 'driver'> = {},
): Promise<LockService> {
  const { locks, end } = await openLocks(address, { namespace: freshNamespace(), ...options })
  onTestFinished(end)
  return locks
}
