import { expect } from 'vitest'
import type { DriverSession } from 'leasehold/driver'
import type { DriverFault } from '../../../../src/core/errors.ts'
import type { Check } from '../../../support/planting.ts'
import type { TestServer } from '../../../support/servers.ts'
import { freshNamespace } from '../../../support/stores.ts'
import { openClient, openIoRedis6, type OpenClient } from '../clients.ts'
import { startNode } from '../cluster-node.ts'
import { call, claimOf, eventually, grant, registration, wanted, wantedMany } from '../requests.ts'
import type { Trial } from './trial.ts'

interface Scene {
  readonly opened: OpenClient
  readonly namespace: string
  readonly session: DriverSession
}

/** A check with a client and a namespace of its own. */
function check(
  sentence: string,
  play: (scene: Scene) => Promise<void>,
  kind: Kind = 'ioredis 6',
): Check<Trial> {
  return {
    sentence,
    run: async ({ redisDriver, server }) => {
      const opened = await openClient(kind, server.url)
      const namespace = freshNamespace()
      const session = redisDriver(opened.client).open(namespace)
      try {
        await play({ opened, namespace, session })
      } finally {
        await session.close()
        await opened.close()
      }
    },
  }
}

type Kind = Parameters<typeof openClient>[0]

/** The outcomes of a call, or its fault. */
function outcomesOf(answering: Promise<readonly { readonly outcome: string }[]>): Promise<unknown> {
  return answering.then(
    (answers) => answers.map(({ outcome }) => outcome),
    (fault: DriverFault) => `${fault.kind}: ${fault.message}`,
  )
}

export const aForeignKeyFailsAlone: Check<Trial> = check(
  'a key of a foreign type fails alone, and the others of its batch are granted',
  async ({ opened, namespace, session }) => {
    await opened.send('rpush', `{leasehold:${namespace}}:k:b`, 'foreign')
    const batch = ['a', 'b', 'c'].map((key) => wanted(key))
    expect(await outcomesOf(session.locks.acquire(batch, call))).toEqual(['granted', 'failed', 'granted'])
  },
)

export const theClockIsReadOnce: Check<Trial> = check(
  'a script reads the clock once, so that all of its batch is of one moment',
  async ({ opened, session }) => {
    await session.locks.acquire(wantedMany(50), call)
    await opened.send('config', 'resetstat')
    await session.locks.acquire(wantedMany(50), call)
    const stats = (await opened.send('info', 'commandstats')) as string
    expect(/^cmdstat_time:calls=(\d+)/m.exec(stats)?.[1]).toBe('1')
  },
)

export const freeRecordsAreForgotten: Check<Trial> = check(
  'the record of a released key is forgotten after a minute',
  async ({ opened, namespace, session }) => {
    const lease = await grant(session, 'key')
    await session.locks.release([lease], call)
    expect(await opened.send('pttl', `{leasehold:${namespace}}:k:key`)).toBeLessThanOrEqual(60_000)
  },
)

export const aTaskIsNoPlainKey: Check<Trial> = check(
  'a plain lock of a task’s name leaves the task alone',
  async ({ session }) => {
    const [task] = await session.tasks.register([registration('report')], call)
    const lease = wanted('report')
    expect(await outcomesOf(session.locks.acquire([lease], call))).toEqual(['granted'])
    await session.locks.release([lease], call)
    expect(await session.tasks.inspect(['report'], call)).toMatchObject([
      { mark: (task as { mark: number }).mark },
    ])
  },
)

export const theLogIsExact: Check<Trial> = check(
  'the log has the fences of runs to their last digit',
  async ({ session: { tasks } }) => {
    for (const task of ['one', 'two', 'three', 'four']) {
      const [registered] = await tasks.register([registration(task)], call)
      const { mark } = registered as { mark: number }
      const claim = claimOf(task, mark + 1, mark)
      const granted = await eventually(
        async () => (await tasks.claim([claim], call))[0],
        (answer) => answer?.outcome === 'granted',
      )
      const { fence } = granted as { fence: number }
      const log = tasks.log({ task, from: mark + 1, to: null, limit: 1 }, call)
      await expect(log).resolves.toMatchObject([{ fence }])
    }
  },
)

export const commandsGoOnWhileListening: Check<Trial> = check(
  'the borrowed client goes on serving commands while somebody listens',
  async ({ session }) => {
    const channel = await session.listen!({ onNotice: () => {}, onDeaf: () => {} })
    expect(await outcomesOf(session.locks.acquire([wanted('key')], call))).toEqual(['granted'])
    await channel.close()
  },
  // Over RESP2 a connection that is subscribed takes no other commands.
  'ioredis 5',
)

export const oneSlotForABatch: Check<Trial> = {
  sentence: 'a batch of any keys is one script in a cluster',
  async run({ redisDriver }) {
    clusterNode ??= startWholeCluster()
    const { client, close } = await openIoRedis6((await clusterNode).url, { enableReadyCheck: false })
    const { locks } = redisDriver(client).open(freshNamespace())
    const batch = ['plain', '{tag}', '}{'].map((key) => wanted(key))
    const outcomes = await outcomesOf(locks.acquire(batch, call))
    await close()
    expect(outcomes).toEqual(['granted', 'granted', 'granted'])
  },
}

let clusterNode: Promise<TestServer> | undefined

/** One node that has all slots. */
async function startWholeCluster(): Promise<TestServer> {
  const { server } = await startNode()
  const { send, close } = await openIoRedis6(server.url, { enableReadyCheck: false })
  await send('cluster', 'addslotsrange', '0', '16383')
  await eventually(
    () => send('cluster', 'info'),
    (info) => String(info).includes('cluster_state:ok'),
  )
  await close()
  return server
}

export async function stopCluster(): Promise<void> {
  await (await clusterNode)?.close()
}
