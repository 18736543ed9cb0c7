import { startPostgres, type TestServer } from '../../../support/servers.ts'

let server: Promise<TestServer> | undefined

/**
 * A server that does nothing of its own accord: nobody writes to the disk for ten seconds unless a commit asks for it, and
 * no snapshot of an autovacuum keeps dead versions of rows where they are.
 */
export function ownServer(): Promise<TestServer> {
  server ??= startPostgres({
    config: {
      wal_writer_delay: '10s',
      synchronous_commit: 'off',
      autovacuum: 'off',
      bgwriter_lru_maxpages: '0',
    },
  })
  return server
}

export async function stopOwnServer(): Promise<void> {
  await (await server)?.close()
}
