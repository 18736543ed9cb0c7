// The clients that the driver is tried with: both libraries in both of their major versions.
import { once } from 'node:events'
import { Redis as IoRedis6, type RedisOptions as IoRedis6Options } from 'ioredis'
import { Redis as IoRedis5, type RedisOptions as IoRedis5Options } from 'ioredis5'
import { createClient as createNodeRedis5 } from 'node-redis5'
import { createClient as createNodeRedis6 } from 'redis'
import type { RedisClient } from 'leasehold/redis'

export type ClientKind = 'ioredis 6' | 'ioredis 5' | 'node-redis 6' | 'node-redis 5'

export const clientKinds: readonly ClientKind[] = ['ioredis 6', 'ioredis 5', 'node-redis 6', 'node-redis 5']

export interface OpenClient {
  readonly client: RedisClient
  /** Sends a command past the driver. */
  send(...args: string[]): Promise<unknown>
  close(): Promise<void>
}

/** A connected client whose errors somebody listens to, as a careful user makes it. */
export async function openClient(kind: ClientKind, url: string): Promise<OpenClient> {
  switch (kind) {
    case 'ioredis 6':
      return openIoRedis6(url)
    case 'ioredis 5':
      return openIoRedis5(url)
    case 'node-redis 6':
      return openNodeRedis6({ url })
    case 'node-redis 5':
      return openNodeRedis5({ url })
  }
}

export async function openIoRedis6(
  url: string,
  options: Omit<IoRedis6Options, 'replyMapping'> = {},
): Promise<OpenClient> {
  const client = new IoRedis6(url, options)
  client.on('error', ignore)
  if (client.status !== 'ready') await once(client, 'ready')
  return {
    client,
    send: (command, ...args) => client.call(command ?? '', args),
    close: async () => client.disconnect(),
  }
}

export async function openIoRedis5(url: string, options: IoRedis5Options = {}): Promise<OpenClient> {
  const client = new IoRedis5(url, options)
  client.on('error', ignore)
  if (client.status !== 'ready') await once(client, 'ready')
  return {
    client,
    send: (command, ...args) => client.call(command ?? '', args),
    close: async () => client.disconnect(),
  }
}

export async function openNodeRedis6(
  options: Parameters<typeof createNodeRedis6>[0] & object,
): Promise<OpenClient> {
  const client = createNodeRedis6(options)
  client.on('error', ignore)
  await client.connect()
  return {
    client,
    send: (...args) => client.sendCommand(args),
    close: async () => {
      if (client.isOpen) client.destroy()
    },
  }
}

export async function openNodeRedis5(
  options: Parameters<typeof createNodeRedis5>[0] & object,
): Promise<OpenClient> {
  const client = createNodeRedis5(options)
  client.on('error', ignore)
  await client.connect()
  return {
    client,
    send: (...args) => client.sendCommand(args),
    close: async () => {
      if (client.isOpen) client.destroy()
    },
  }
}

function ignore(): void {}
