import type { Scenario } from '../scenario.ts'
import { bloat } from './bloat.ts'
import { sqliteCycles } from './cycle-files.ts'
import { memoryCycle } from './cycle-memory.ts'
import { postgresCycles } from './cycle-postgres.ts'
import { redisCycles } from './cycle-redis.ts'
import { handovers } from './handover.ts'
import { heartbeats } from './heartbeat.ts'
import { idleWaits } from './idlewait.ts'
import { importing } from './importing.ts'
import { memoryPerLease } from './memory-per-lease.ts'
import { skipOnRedis } from './skip-redis.ts'
import { storm } from './storm.ts'

export const scenarios: readonly Scenario[] = [
  ...redisCycles,
  ...postgresCycles,
  ...sqliteCycles,
  memoryCycle,
  ...handovers,
  ...idleWaits,
  ...heartbeats,
  skipOnRedis,
  storm,
  importing,
  memoryPerLease,
  ...bloat,
]
