import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Cluster as Cluster6 } from 'ioredis'
import { Cluster as Cluster5 } from 'ioredis5'
import { redisDriver } from 'leasehold/redis'
import type { TestServer } from '../../support/servers.ts'
import { openIoRedis6, type OpenClient } from './clients.ts'
import { startNode } from './cluster-node.ts'
import { useAll } from './every-answer.ts'
import { call, claimOf, eventually, faultOf, grant, registration, wanted } from './requests.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

const slotRanges = [
  ['0', '5460'],
  ['5461', '10922'],
  ['10923', '16383'],
] as const

describe.each([
  ['ioredis 6', Cluster6],
  ['ioredis 5', Cluster5],
] as const)('a cluster of three nodes with %s', (_name, Cluster) => {
  const nodes: TestServer[] = []
  const operators: OpenClient[] = []

  beforeAll(async () => {
    for (const [first, last] of slotRanges) {
      const { server, busPort } = await startNode()
      const operator = await openIoRedis6(server.url, { enableReadyCheck: false })
      await operator.send('cluster', 'addslotsrange', first, last)
      await operator.send('cluster', 'set-config-epoch', String(nodes.length + 1))
      await operators[0]?.send('cluster', 'meet', '127.0.0.1', String(server.port), String(busPort))
      nodes.push(server)
      operators.push(operator)
    }
    for (const { send } of operators) {
      await eventually(
        () => send('cluster', 'info'),
        (info) => /cluster_state:ok[^]*cluster_known_nodes:3/.test(String(info)),
      )
    }
  })
  afterAll(async () => {
    for (const { close } of operators) await close()
    for (const node of nodes) await node.close()
  })

  const connect = () => {
    const client = new Cluster(nodes.slice(0, 1).map(({ host, port }) => ({ host, port })))
    client.on('error', () => {})
    closing.push(() => client.disconnect())
    return client
  }
  const subscribers = async () => {
    const lists = await Promise.all(operators.map(({ send }) => send('client', 'list', 'type', 'pubsub')))
    return lists.join('').split('\n').filter(Boolean).length
  }

  it('serves namespaces on each of its nodes, with push', async () => {
    const client = connect()
    for (let at = 0; at < 6; at++) await useAll(client, `namespace ${at}`)
    const sizes = await Promise.all(operators.map(({ send }) => send('dbsize')))
    expect(sizes).not.toContain(0)
    await eventually(subscribers, (count) => count === 0)
  })

  it('survives scripts that the nodes have forgotten, and killed connections', async () => {
    const session = redisDriver(connect()).open('killed')
    closing.push(() => session.close())
    const lease = await grant(session, 'a')
    let channel = await session.listen!({ onNotice() {}, onDeaf() {} })
    await channel.probe()
    for (const { send } of operators) {
      await send('script', 'flush')
      for (const type of ['pubsub', 'normal']) await send('client', 'kill', 'type', type, 'skipme', 'yes')
    }
    await eventually(
      () => session.locks.refresh([lease], call).then(([answer]) => answer?.outcome, String),
      (outcome) => outcome === 'held',
    )
    // As the core does: a channel that hears nothing is opened anew.
    await eventually(
      async () => {
        const probing = channel.probe().then(
          () => true,
          () => false,
        )
        const isHeard = await Promise.race([
          probing,
          new Promise((resolve) => setTimeout(resolve, 1_000, false)),
        ])
        if (isHeard === false) {
          await channel.close()
          channel = await session.listen!({ onNotice() {}, onDeaf() {} })
        }
        return isHeard
      },
      (isHeard) => isHeard === true,
    )
    await eventually(subscribers, (count) => count === 1)
    await session.close()
    await eventually(subscribers, (count) => count === 0)
  })
})

describe('one node of a cluster', () => {
  it('keeps a namespace in one slot, whatever its keys are called (N11)', async () => {
    const { server } = await startNode()
    closing.push(() => server.close())
    const opened = await openIoRedis6(server.url, { enableReadyCheck: false })
    closing.push(() => opened.close())
    await opened.send('cluster', 'addslotsrange', '0', '16383')
    await eventually(
      () => opened.send('cluster', 'info'),
      (info) => String(info).includes('cluster_state:ok'),
    )
    const namespaces = ['prod', 'a:b', '{other}', 'a}b', 'é{', '}{', '%']
    const keys = ['plain', '{tag}', '}{', '{}', 'a}b{c}', '😀']
    const each = (outcome: string) => keys.map(() => ({ outcome }))
    for (const namespace of namespaces) {
      const session = redisDriver(opened.client).open(namespace)
      const requests = keys.map((key) => wanted(key))
      expect(await session.locks.acquire(requests, call)).toMatchObject(each('granted'))
      const page = await session.locks.scan({ prefix: '', limit: 100, cursor: null }, call)
      expect(page.records.map(({ key }) => key).toSorted()).toEqual(keys.toSorted())
      expect(await session.locks.release(requests, call)).toMatchObject(each('released'))
      const registrations = keys.map((key) => registration(key))
      expect(await session.tasks.register(registrations, call)).toMatchObject(each('created'))
      const claims = keys.map((key) => claimOf(key, 5, 4))
      expect(await session.tasks.claim(claims, call)).toMatchObject(each('decided'))
      expect(await session.tasks.inspect(null, call)).toHaveLength(keys.length)
      expect(await session.tasks.purge({ retentionMs: -60_000, limit: 100 }, call)).toBe(keys.length)
    }
    const names = (await opened.send('keys', '*')) as string[]
    const slots = new Map<string, Set<unknown>>()
    for (const name of names) {
      const namespace = name.slice(0, name.indexOf('}:'))
      const found = slots.get(namespace) ?? new Set()
      slots.set(namespace, found.add(await opened.send('cluster', 'keyslot', name)))
    }
    expect(slots.size).toBe(namespaces.length)
    for (const [namespace, found] of slots) expect([namespace, found.size]).toEqual([namespace, 1])
  })

  it('without all slots, or that owns the slot no more, refuses with advice', async () => {
    const { server } = await startNode()
    closing.push(() => server.close())
    const { client, close, send } = await openIoRedis6(server.url, { enableReadyCheck: false })
    closing.push(close)
    const { locks } = redisDriver(client).open('a')
    expect(await faultOf(locks.acquire([wanted('a')], call))).toMatchObject({
      kind: 'not-sent',
      message: expect.stringContaining('CLUSTERDOWN'),
    })
    await send('cluster', 'addslotsrange', '0', '16383')
    const slot = String(await send('cluster', 'keyslot', '{leasehold:a}'))
    await eventually(
      () => send('cluster', 'info'),
      (info) => String(info).includes('cluster_state:ok'),
    )
    const { server: other, busPort } = await startNode()
    closing.push(() => other.close())
    const far = await openIoRedis6(other.url, { enableReadyCheck: false })
    closing.push(far.close)
    await send('cluster', 'meet', '127.0.0.1', String(other.port), String(busPort))
    const id = String(await far.send('cluster', 'myid'))
    await eventually(
      () => send('cluster', 'setslot', slot, 'node', id).then(String, String),
      (answer) => answer === 'OK',
    )
    expect(await faultOf(locks.acquire([wanted('a')], call))).toMatchObject({
      kind: 'unusable',
      message: expect.stringContaining('MOVED'),
    })
  })
})
