// A redis or PostgreSQL server of a test's own, to stop, kill, freeze and restart. Tests that only need a
// store take the shared one from stores.ts.
export { ProgramMissingError } from '../../scripts/servers/programs.mjs'
export { startPostgres, type PostgresOptions } from '../../scripts/servers/postgres.mjs'
export { startRedis, type RedisOptions } from '../../scripts/servers/redis.mjs'
export type { Server as TestServer } from '../../scripts/servers/server.mjs'
