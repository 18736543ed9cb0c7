import { once } from 'node:events'
import { connect } from 'node:net'

/** Counts what clients send to a Redis, by the database that they use. */
export interface RedisCommandCount {
  /** Since the last reset. */
  of(database: number): number
  reset(): void
  close(): void
}

/**
 * Counts by MONITOR, the server's own record of each command. Its `commandstats` don't do: they count what a script runs
 * inside as well, which costs no round trip. MONITOR slows the server, so nothing is timed while it counts.
 */
export async function countRedisCommands(port: number): Promise<RedisCommandCount> {
  const socket = connect(port, '127.0.0.1')
  const counts = new Map<number, number>()
  let rest = ''
  socket.setEncoding('latin1')
  await once(socket, 'connect')
  socket.write('MONITOR\r\n')
  await once(socket, 'data')
  socket.on('data', (text: string) => {
    const lines = (rest + text).split('\r\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      // +1700000000.123456 [0 127.0.0.1:1234] "set" …; what a script runs is [0 lua].
      const database = /^\+[\d.]+ \[(\d+) (?!lua)/.exec(line)?.[1]
      if (database !== undefined) counts.set(Number(database), (counts.get(Number(database)) ?? 0) + 1)
    }
  })
  return {
    of: (database) => counts.get(database) ?? 0,
    reset: () => counts.clear(),
    close: () => socket.destroy(),
  }
}
