import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Redis } from 'ioredis'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { isAlive } from '../../scripts/is-alive.mjs'
import { startPostgres, startRedis } from './servers.ts'
import { freshPostgresUrl, isAvailable, postgresUrl, redisUrl } from './stores.ts'

describe.skipIf(!(await isAvailable('redis')))('a redis-server of a test’s own', () => {
  it('answers as soon as it is started, and again on the same port after a kill', async () => {
    await using server = await startRedis()
    const client = new Redis(server.url)
    client.on('error', () => {})
    const url = server.url
    expect(await client.ping()).toBe('PONG')
    await server.kill()
    await server.restart()
    expect(server.url).toBe(url)
    expect(await client.ping()).toBe('PONG')
    client.disconnect()
  })

  it('keeps its data over a restart only when asked to', async () => {
    await using forgetful = await startRedis()
    await using durable = await startRedis({ config: { appendonly: 'yes' } })
    for (const [server, expected] of [
      [forgetful, null],
      [durable, 'v'],
    ] as const) {
      const client = new Redis(server.url)
      client.on('error', () => {})
      await client.set('k', 'v')
      await server.restart()
      expect(await client.get('k')).toBe(expected)
      client.disconnect()
    }
  })

  it('is not the shared one', async () => {
    await using server = await startRedis()
    expect(server.url).not.toBe(await redisUrl())
  })
})

describe.skipIf(!(await isAvailable('postgres')))('a PostgreSQL server of a test’s own', () => {
  it('is durable as by default, and comes back with its data after a kill', async () => {
    await using server = await startPostgres({ config: { max_connections: '20' } })
    const answers = async (sql: string) => {
      const client = new pg.Client(server.url)
      await client.connect()
      const { rows } = await client.query({ text: sql, rowMode: 'array' })
      await client.end()
      return rows.flat()
    }
    const setting = `select setting from pg_settings where name in ('fsync', 'max_connections', 'synchronous_commit') order by name`
    expect(await answers(setting)).toEqual(['on', '20', 'on'])
    await answers('create table t as select 7 as n')
    await server.kill()
    await server.restart()
    expect(await answers('select n from t')).toEqual([7])
  })

  it('answers nothing while it is paused, on connections old and new', async () => {
    await using server = await startPostgres()
    const client = new pg.Client(server.url)
    await client.connect()
    server.pause()
    const order: string[] = []
    const query = client.query('select 1').then(() => order.push('answered'))
    await new Promise((resolve) => setTimeout(resolve, 100))
    order.push('resumed')
    server.resume()
    await query
    expect(order).toEqual(['resumed', 'answered'])
    await client.end()
  })

  it('shares a server but not a database', async () => {
    const [one, other] = [await freshPostgresUrl(), await freshPostgresUrl()]
    expect(new URL(one).host).toBe(new URL(await postgresUrl()).host)
    expect(one).not.toBe(other)
  })
})

const bothAreHere = (await isAvailable('redis')) && (await isAvailable('postgres'))

describe.skipIf(!bothAreHere || process.platform !== 'linux')('a server whose starter is killed', () => {
  it.each(['redis', 'postgres'])(
    'ends with it, as SIGKILL leaves no time to clear up (%s)',
    async (store) => {
      const program = `
      const { ${store === 'redis' ? 'startRedis' : 'startPostgres'}: start } = await import('./scripts/servers/${store}.mjs')
      process.stdout.write(String((await start()).pid))
      setInterval(() => {}, 1_000)`
      const starter = spawn(process.execPath, ['--input-type=module', '-e', program], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const [pid] = (await once(starter.stdout, 'data')) as [Buffer]
      expect(isAlive(Number(pid))).toBe(true)
      starter.kill('SIGKILL')
      await expect.poll(() => isAlive(Number(pid)), { timeout: 10_000 }).toBe(false)
    },
  )
})
