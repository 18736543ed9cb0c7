// The servers that all test files of a run share. Each is started when the first file asks for it; files
// keep apart by their own namespace, table prefix or database.
import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { query } from '../../scripts/servers/postgres-wire.mjs'
import { askBroker, type Store } from './server-broker.ts'

export type { Store } from './server-broker.ts'

const answers = new Map<Store, ReturnType<typeof askBroker>>()

/** The URL of the shared redis-server. */
export function redisUrl(): Promise<string> {
  return storeUrl('redis')
}

/** The URL of the shared PostgreSQL server: superuser, default durability. */
export function postgresUrl(): Promise<string> {
  return storeUrl('postgres')
}

/** The URL of a database of the shared PostgreSQL server as it is seen behind the shared pgbouncer. */
export async function pooledUrl(databaseUrl: string): Promise<string> {
  const url = new URL(databaseUrl)
  url.host = new URL(await storeUrl('pgbouncer')).host
  return url.href
}

/** A new, empty database on the shared PostgreSQL server. */
export async function freshPostgresUrl(): Promise<string> {
  const url = new URL(await postgresUrl())
  const name = `test_${randomBytes(6).toString('hex')}`
  await query({ port: Number(url.port), sql: `create database ${name}` })
  url.pathname = `/${name}`
  return url.href
}

/** A namespace nobody else uses. */
export function freshNamespace(): string {
  return `test-${randomBytes(6).toString('hex')}`
}

/**
 * Whether the store can be tested here, for `describe.skipIf(!(await isAvailable('redis')))`. With `CI=true`
 * it is, or the test file fails; elsewhere what was left out is named at the end of the run.
 */
export async function isAvailable(store: Store): Promise<boolean> {
  const answer = await ask(store)
  if ('error' in answer) throw new Error(answer.error)
  return 'url' in answer
}

async function storeUrl(store: Store): Promise<string> {
  const answer = await ask(store)
  if ('url' in answer) return answer.url
  throw new Error('missing' in answer ? answer.missing : answer.error)
}

function ask(store: Store): ReturnType<typeof askBroker> {
  const known = answers.get(store)
  if (known !== undefined) return known
  const answer = askBroker(inject('serverBroker'), store)
  answers.set(store, answer)
  return answer
}
