import { DriverFault, type DriverFaultKind } from '../../core/errors.ts'
import type { RedisConnection } from './clients.ts'

/**
 * Sends one command and answers its reply.
 *
 * @throws DriverFault that says how far it came
 */
export async function sendCommand(
  connection: RedisConnection,
  command: string,
  args: readonly string[],
): Promise<unknown> {
  assertReachable(connection)
  const wire = connection.wire()
  try {
    return await connection.send(command, args)
  } catch (error) {
    if (connection.isUnwritten(error)) {
      throw new DriverFault('not-sent', `The Redis client did not send the command: ${messageOf(error)}`, {
        cause: error,
      })
    }
    throw toFault(error, connection.wire() !== wire)
  }
}

/** @throws DriverFault `not-sent` if the client is closed */
export function assertReachable(connection: RedisConnection): void {
  const obstacle = connection.obstacle()
  if (obstacle !== null) throw new DriverFault('not-sent', obstacle)
}

/** The code of an error reply (`NOSCRIPT`, `OOM`, …), also of one that a script passed on; null for any other error. */
export function replyCode(error: unknown): string | null {
  const message = messageOf(error)
  const [, code] = /^-?([A-Z][A-Z0-9]+)(?: |$)/.exec(message) ?? []
  if (code !== 'ERR') return code ?? null
  // Redis before 7 puts the reply of the command behind the place in the script.
  const [, passedOn] = /@user_script: ?\d+: (?:@user_script: ?\d+: )?-?([A-Z][A-Z0-9]+) /.exec(message) ?? []
  return passedOn ?? code
}

interface Refusal {
  readonly kind: DriverFaultKind
  readonly advice: string
}

/*
 * A server that refuses a command says so with one of these, and has applied nothing: Redis checks rights, role and
 * memory before the first write of a script, never after. What passes with time is `not-sent`, so that a holder keeps
 * trying until its deadline.
 */
const refusals: Readonly<Record<string, Refusal>> = {
  READONLY: {
    kind: 'not-sent',
    advice:
      'This is a replica. Connect the client to the primary, and let it reconnect after a failover (ioredis: reconnectOnError).',
  },
  MASTERDOWN: {
    kind: 'not-sent',
    advice: 'This is a replica that has lost its primary. Connect the client to the primary.',
  },
  LOADING: { kind: 'not-sent', advice: 'Redis is still loading its data. Try again when it has.' },
  BUSY: {
    kind: 'not-sent',
    advice: 'Redis is busy with a script of somebody else. Wait for it, or end it with SCRIPT KILL.',
  },
  OOM: {
    kind: 'not-sent',
    advice:
      'Redis has reached its maxmemory and evicts nothing. Free memory or raise the limit; leases that are held go on being renewed and released.',
  },
  MISCONF: {
    kind: 'not-sent',
    advice: 'Redis cannot persist and refuses to write. See its log, and the free space of its disk.',
  },
  NOREPLICAS: { kind: 'not-sent', advice: 'Redis misses the replicas that min-replicas-to-write asks for.' },
  CLUSTERDOWN: { kind: 'not-sent', advice: 'The cluster is not complete. Try again when it is.' },
  TRYAGAIN: { kind: 'not-sent', advice: 'The cluster is moving this slot. Try again when it has.' },
  MOVED: {
    kind: 'unusable',
    advice: 'The namespace lives on another node of a cluster, and this client does not follow.',
  },
  ASK: {
    kind: 'unusable',
    advice: 'The namespace is moving to another node of a cluster, and this client does not follow.',
  },
  CROSSSLOT: {
    kind: 'unusable',
    advice: 'Something between here and Redis changed the names of keys: they share one hash tag.',
  },
  NOAUTH: { kind: 'unusable', advice: 'Give the client a password (and a user name, if Redis has an ACL).' },
  WRONGPASS: { kind: 'unusable', advice: 'Give the client a user name and password that are right.' },
  NOPERM: {
    kind: 'unusable',
    advice: 'The user of the client lacks a right; docs/drivers/redis.md lists those that it needs.',
  },
  DENIED: {
    kind: 'unusable',
    advice: 'Redis is in protected mode: give it a password, or bind it to addresses that you trust.',
  },
  WRONGTYPE: {
    kind: 'unusable',
    advice:
      'A key of the namespace holds something that Leasehold did not write. Delete it, or use another prefix.',
  },
  FOREIGN: {
    kind: 'unusable',
    advice:
      'A key of the namespace holds something that Leasehold did not write. Delete it, or use another prefix.',
  },
  FENCE: {
    kind: 'unusable',
    advice: 'The clock of the server was once past the year 2255. Correct it, and delete the record.',
  },
}

/** @param isResent the client may have written the command before, on a connection that it lost */
function toFault(error: unknown, isResent: boolean): DriverFault {
  const message = messageOf(error)
  const code = replyCode(error)
  const refusal = code === null ? undefined : refusals[code]
  if (refusal !== undefined) {
    // What refused the second time may have been applied the first.
    const kind = isResent && refusal.kind === 'not-sent' ? 'unknown' : refusal.kind
    return new DriverFault(kind, `Redis refused: ${message} ${refusal.advice}`, { cause: error })
  }
  if (code === 'ERR' && /unknown command/i.test(message)) {
    return new DriverFault(
      'unusable',
      `Redis refused: ${message} The driver needs EVALSHA, EVAL and PUBLISH.`,
      {
        cause: error,
      },
    )
  }
  return new DriverFault('unknown', `Redis did not answer as it should: ${message}`, { cause: error })
}

/** The error of one item, from the text that a script answered for it. */
export function itemFault(name: string, trouble: string): DriverFault {
  const code = replyCode(new Error(trouble))
  const refusal = code === null ? undefined : refusals[code]
  const kind = refusal?.kind ?? 'unusable'
  return new DriverFault(
    kind,
    `Redis key ${JSON.stringify(name)}: ${trouble}. ${refusal?.advice ?? ''}`.trim(),
  )
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
