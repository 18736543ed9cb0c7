import type { Mutex, MutexSubject } from '../mutex.ts'
import { type FileConnections, fileSubjects } from './files.ts'
import { openPostgresConnections, postgresSubjects } from './postgres.ts'
import { openRedisConnections, redisSubjects } from './redis.ts'

export type Family = 'redis' | 'postgres' | 'files'

/** Opens one subject with connections of its own: for processes other than the benchmark's. */
export async function openMutex(
  family: Family,
  name: string,
  url: string,
  application = name,
): Promise<Mutex> {
  if (family === 'files') return subject<FileConnections>(fileSubjects, name).open({ folder: url })
  if (family === 'redis') {
    const connections = await openRedisConnections(url)
    return closing(await subject(redisSubjects, name).open(connections), connections)
  }
  const connections = await openPostgresConnections(url, application)
  return closing(await subject(postgresSubjects, name).open(connections), connections)
}

function subject<Connections>(
  subjects: readonly MutexSubject<Connections>[],
  name: string,
): MutexSubject<Connections> {
  const found = subjects.find((candidate) => candidate.name === name)
  if (found === undefined) throw new Error(`There is no subject ${name}`)
  return found
}

function closing(mutex: Mutex, connections: { close(): Promise<void> }): Mutex {
  return {
    ...mutex,
    async close() {
      await mutex.close()
      await connections.close()
    },
  }
}
