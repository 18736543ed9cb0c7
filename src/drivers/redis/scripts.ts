import { createHash } from 'node:crypto'
import type { RedisConnection } from './clients.ts'
import { replyCode, sendCommand } from './faults.ts'

/** A Lua script and the name under which the server caches it. */
export interface Script {
  readonly text: string
  readonly sha: string
}

export function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}

/** What a script answers: texts and lists of texts, whatever the protocol and however the client maps types. */
export type Reply = string | readonly Reply[]

/**
 * Runs a script in one round trip; in two when the server does not know it, which can be at any moment: after a
 * restart, a failover, `SCRIPT FLUSH`. The second carries the text itself, so that nothing can be forgotten in between.
 *
 * @throws DriverFault
 */
export async function runScript(
  connection: RedisConnection,
  { text, sha }: Script,
  keys: readonly string[],
  args: readonly string[],
): Promise<readonly Reply[]> {
  const { ownPrefix } = connection
  const names = ownPrefix === '' ? keys : keys.map((key) => ownPrefix + key)
  const parameters = [String(keys.length), ...names, ...args]
  try {
    return toReplies(await sendCommand(connection, 'evalsha', [sha, ...parameters]))
  } catch (error) {
    if (!(error instanceof Error) || replyCode(error.cause) !== 'NOSCRIPT') throw error
  }
  return toReplies(await sendCommand(connection, 'eval', [text, ...parameters]))
}

function toReplies(reply: unknown): readonly Reply[] {
  return (reply as readonly unknown[]).map(toReply)
}

/** Clients can be told to hand out buffers for strings. */
function toReply(reply: unknown): Reply {
  return Array.isArray(reply) ? reply.map(toReply) : String(reply)
}
