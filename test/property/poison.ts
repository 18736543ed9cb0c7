// Stores whose records a test can spoil, as another program, a bad restore or an operator's mistake would.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import type { Driver } from 'leasehold/driver'
import { postgresDriver } from 'leasehold/postgres'
import { redisDriver } from 'leasehold/redis'
import { sqliteDriver } from 'leasehold/sqlite'
import pg from 'pg'
import { loadSqliteLibrary } from '../../src/drivers/sqlite/clients.ts'
import { freshPostgresUrl, isAvailable, redisUrl } from '../support/stores.ts'

/** Where a record is. */
export interface Place {
  readonly what: 'lease' | 'task' | 'run'
  readonly namespace: string
  readonly name: string
}

/** Something that is done to one record. */
export interface Poison {
  readonly what: unknown
  spoil(store: PoisonableStore, place: Place): Promise<unknown>
}

export interface PoisonableStore {
  readonly first: Driver
  readonly second: Driver
  /** Sends something past the driver. */
  send(...args: string[]): Promise<unknown>
  close(): Promise<unknown>
}

export interface PoisonableKind {
  readonly name: string
  readonly isHere: boolean
  readonly poison: (what: Place['what']) => fc.Arbitrary<Poison>
  open(): Promise<PoisonableStore>
}

const numbersAsText = fc.constantFrom(
  '',
  '0',
  '-1',
  '1e3',
  'nan',
  'inf',
  '-inf',
  '0x10',
  '9'.repeat(16),
  '9'.repeat(400),
  ' 5',
  '5 ',
  '1.5',
)
const anyText = fc.oneof(
  numbersAsText,
  fc.constantFrom(
    '[]',
    '{}',
    '[1]',
    '[null]',
    '"x"',
    'null',
    'false',
    '{"a":',
    '[[[[',
    '-',
    '1 ',
    '2 x',
    '\0',
    '\r\n',
  ),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constant('x'.repeat(100_000)),
)

// ---- Redis

const nameOf = ({ what, namespace, name }: Place): string =>
  `{leasehold:${namespace}}:${{ lease: 'k', task: 't', run: 'r' }[what]}:${name}`

const otherTypes: Readonly<Record<string, (name: string) => string[]>> = {
  list: (name) => ['rpush', name, 'foreign'],
  set: (name) => ['sadd', name, 'foreign'],
  hash: (name) => ['hset', name, 'foreign', '1'],
  'sorted set': (name) => ['zadd', name, '5', 'foreign'],
  stream: (name) => ['xadd', name, '*', 'foreign', '1'],
  text: (name) => ['set', name, 'foreign'],
}

const otherType = fc.constantFrom(...Object.keys(otherTypes)).map((type): Poison => ({
  what: `a ${type} in its place`,
  async spoil(store, place) {
    await store.send('del', nameOf(place))
    await store.send(...(otherTypes[type]?.(nameOf(place)) ?? []))
  },
}))

const edit = fc.record({ at: fc.double({ min: 0, max: 1, noNaN: true }), drop: fc.nat(40), add: anyText })
type Edit = typeof edit extends fc.Arbitrary<infer Value> ? Value : never

const edited = (text: string, { at, drop, add }: Edit): string => {
  const from = Math.floor(at * text.length)
  return text.slice(0, from) + add + text.slice(from + drop)
}

const spoiltLease = fc.oneof(
  otherType,
  edit.map((change): Poison => ({
    what: change,
    async spoil(store, place) {
      const record = String(await store.send('get', nameOf(place)))
      await store.send('set', nameOf(place), edited(record, change))
    },
  })),
  fc.double({ min: 0, max: 1, noNaN: true }).map((part): Poison => ({
    what: `cut off at ${part}`,
    async spoil(store, place) {
      const record = String(await store.send('get', nameOf(place)))
      await store.send('set', nameOf(place), record.slice(0, Math.floor(part * record.length)))
    },
  })),
  // One of its words is another: version, fence, expires, acquired, waiting until, revoked, tokens.
  fc.tuple(fc.nat(8), anyText).map(([at, text]): Poison => ({
    what: { word: at, text },
    async spoil(store, place) {
      const words = String(await store.send('get', nameOf(place))).split(' ')
      const { length } = words[at] ?? ''
      await store.send(
        'set',
        nameOf(place),
        words.with(at, text.slice(0, Math.max(1, length)).padStart(length, ' ')).join(' '),
      )
    },
  })),
)

const spoiltTask = fc.oneof(
  otherType,
  fc.tuple(fc.nat(18), fc.option(anyText)).map(([at, text]): Poison => ({
    what: { field: at, text },
    async spoil(store, place) {
      const fields = (await store.send('hkeys', nameOf(place))) as string[]
      const field = fields.toSorted()[at % fields.length] ?? ''
      await (text === null
        ? store.send('hdel', nameOf(place), field)
        : store.send('hset', nameOf(place), field, text))
    },
  })),
)

/** The first row of a run log, which begins with its attempt in ten digits. */
async function rewriteRow(
  store: PoisonableStore,
  place: Place,
  rewrite: (row: string) => string,
): Promise<void> {
  const name = nameOf(place)
  const [member = '', score = ''] = (await store.send('zrange', name, '0', '0', 'withscores')) as string[]
  await store.send('del', name)
  await store.send('zadd', name, score, member.slice(0, 10) + rewrite(member.slice(10)))
}

const spoiltRun = fc.oneof(
  otherType,
  edit.map((change): Poison => ({
    what: change,
    spoil: (store, place) => rewriteRow(store, place, (row) => edited(row, change)),
  })),
  fc.array(fc.oneof(anyText, fc.constant(false)), { maxLength: 14 }).map((row): Poison => ({
    what: row,
    spoil: (store, place) => rewriteRow(store, place, () => JSON.stringify(row)),
  })),
)

const redis: PoisonableKind = {
  name: 'redis',
  isHere: await isAvailable('redis'),
  poison: (what) => ({ lease: spoiltLease, task: spoiltTask, run: spoiltRun })[what],
  async open() {
    const [one, other, own] = await Promise.all([0, 1, 2].map(async () => new Redis(await redisUrl())))
    return {
      first: redisDriver(one as Redis, { push: false }),
      second: redisDriver(other as Redis, { push: false }),
      send: (command, ...args) => (own as Redis).call(command, ...args),
      close: async () => [one, other, own].forEach((client) => client?.disconnect()),
    }
  },
}

// ---- SQL

/** One column of one row is set to something that its type allows. */
function spoiltColumn(
  columns: Readonly<Record<Place['what'], Readonly<Record<string, fc.Arbitrary<string | null>>>>>,
  tableOf: Readonly<Record<Place['what'], readonly [table: string, key: string]>>,
): PoisonableKind['poison'] {
  return (what) =>
    fc
      .oneof(
        ...Object.entries(columns[what]).map(([column, values]) =>
          values.map((value) => ({ column, value })),
        ),
      )
      .map(({ column, value }) => ({
        what: { column, value },
        spoil: (store, { namespace, name }) => {
          const [table, key] = tableOf[what]
          return store.send(
            `update ${table} set ${column} = ${value} where namespace = '${namespace}' and ${key} = '${name}'`,
          )
        },
      }))
}

const sqlText = anyText
  .map((text) => text.replaceAll('\0', '').toWellFormed())
  .map((text) => `'${text.replaceAll("'", "''")}'`)
const orNull = (values: fc.Arbitrary<string>) => fc.option(values, { nil: 'null' })
const whole = fc.constantFrom(
  '0',
  '-1',
  '1',
  '9007199254740991',
  '9007199254740992',
  '9223372036854775807',
  '-9223372036854775807',
)
const small = fc.constantFrom('0', '-1', '2147483647', '-2147483648')
const moment = fc.constantFrom(
  "'infinity'",
  "'-infinity'",
  "'epoch'",
  "'0001-01-01'",
  "'294276-01-01'",
  "'4713-01-01 BC'",
)
const boolean = fc.constantFrom('true', 'false')
const texts = fc.constantFrom(
  "'{}'",
  "'{null}'",
  `'{"a",null}'`,
  "'{{a,b},{c,d}}'",
  "array(select 'x' || g from generate_series(1, 1000) g)",
)

const postgres: PoisonableKind = {
  name: 'postgres',
  isHere: await isAvailable('postgres'),
  poison: spoiltColumn(
    {
      lease: {
        token: orNull(sqlText),
        released_token: orNull(sqlText),
        fence: whole,
        holder: sqlText,
        acquired_at: moment,
        expires_at: moment,
        waiting_until: moment,
        revoked: boolean,
      },
      task: {
        mark: whole,
        fingerprint: sqlText,
        former_fingerprints: texts,
        generation: small,
        definition: sqlText,
        registered_at: moment,
        attended_until: moment,
        paused_by: orNull(sqlText),
        fence: whole,
        run_slot: orNull(whole),
        run_attempt: orNull(small),
        run_token: orNull(sqlText),
        run_holder: orNull(sqlText),
        run_expires_at: orNull(moment),
        run_stop: orNull(sqlText),
      },
      run: {
        slot: whole,
        attempt: small,
        state: sqlText,
        reason: orNull(sqlText),
        follows: whole,
        gap: sqlText,
        fence: orNull(whole),
        holder: orNull(sqlText),
        started_at: moment,
        ended_at: orNull(moment),
        error: orNull(sqlText),
        late: orNull(sqlText),
      },
    },
    {
      lease: ['leasehold_leases', 'key'],
      task: ['leasehold_tasks', 'task'],
      run: ['leasehold_runs', 'task'],
    },
  ),
  async open() {
    const connectionString = await freshPostgresUrl()
    const pools = [2, 2, 1].map((max) => new pg.Pool({ connectionString, max }))
    const [one, other, own] = pools as [pg.Pool, pg.Pool, pg.Pool]
    return {
      first: postgresDriver(one, { listen: false }),
      second: postgresDriver(other, { listen: false }),
      send: (sql = '') => own.query(sql),
      close: () => Promise.all(pools.map((pool) => pool.end())),
    }
  },
}

const json = fc.oneof(sqlText, fc.constantFrom("'[]'", "'[1]'", "'{}'", "'null'", '\'["a"]\''))

const sqlite: PoisonableKind = {
  name: 'sqlite',
  isHere: true,
  poison: spoiltColumn(
    {
      lease: {
        token: orNull(sqlText),
        spent: orNull(sqlText),
        fence: whole,
        holder: sqlText,
        acquired_at: whole,
        expires_at: whole,
        waiting_until: whole,
        revoked: whole,
      },
      task: {
        mark: whole,
        fingerprint: sqlText,
        former: json,
        generation: whole,
        definition: sqlText,
        registered_at: whole,
        attended_until: whole,
        paused_by: orNull(sqlText),
        run_slot: orNull(whole),
        run_attempt: orNull(whole),
        run_token: orNull(sqlText),
        run_fence: orNull(whole),
        run_holder: orNull(sqlText),
        run_expires_at: orNull(whole),
        run_stop: orNull(sqlText),
        requests: json,
      },
      run: {
        slot: whole,
        attempt: whole,
        state: sqlText,
        reason: orNull(sqlText),
        after: whole,
        gap: sqlText,
        fence: orNull(whole),
        holder: orNull(sqlText),
        started_at: whole,
        ended_at: orNull(whole),
        error: orNull(sqlText),
        late: orNull(sqlText),
      },
    },
    { lease: ['leasehold_lease', 'key'], task: ['leasehold_task', 'task'], run: ['leasehold_run', 'task'] },
  ),
  async open() {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-poison-'))
    const path = join(folder, 'poison.db')
    const own = loadSqliteLibrary().open(path)
    own.exec('pragma busy_timeout = 5000')
    return {
      first: sqliteDriver({ path }),
      second: sqliteDriver({ path }),
      send: async (sql = '') => own.exec(sql),
      close: async () => {
        own.close()
        rmSync(folder, { recursive: true, force: true })
      },
    }
  },
}

export const poisonableKinds: readonly PoisonableKind[] = [redis, sqlite, postgres]
