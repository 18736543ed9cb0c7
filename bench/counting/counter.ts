import type { Stores } from '../stores.ts'
import { countPostgresStatements } from './postgres-statements.ts'
import { countRedisCommands } from './redis-commands.ts'

/** What one subject's connections send to a store, as the store itself sees it. */
export interface Counter {
  /** Since the last reset. */
  count(): number
  reset(): void
}

export interface CountedStore {
  /**
   * A place on the store's server for one subject, whose traffic is counted apart from the others': on Redis a database of its
   * own, on PostgreSQL a name that its connections go by.
   */
  place(index: number): { readonly url: string; readonly application: string; readonly counter: Counter }
  /** While something is timed: what a server writes down of each command slows it. */
  pause(): Promise<void>
  resume(): Promise<void>
}

/** Begins to count. {@link CountedStore.pause} it in the end. */
export async function countOn(store: 'redis' | 'postgres', stores: Stores): Promise<CountedStore> {
  if (store === 'redis') {
    const server = await stores.redis()
    let commands = await countRedisCommands(server.port)
    return {
      place: (index) => ({
        url: `${server.url}/${index + 1}`,
        application: '',
        counter: { count: () => commands.of(index + 1), reset: () => commands.reset() },
      }),
      pause: async () => commands.close(),
      resume: async () => {
        commands = await countRedisCommands(server.port)
      },
    }
  }
  const server = await stores.postgres()
  let statements = await countPostgresStatements(server)
  return {
    place: (index) => {
      const application = `subject-${index + 1}`
      const counter = { count: () => statements.of(application), reset: () => statements.reset() }
      return { url: server.url, application, counter }
    },
    pause: () => statements.close(),
    resume: async () => {
      statements = await countPostgresStatements(server)
    },
  }
}
