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
  stopCounting(): Promise<void>
}

export async function countOn(store: 'redis' | 'postgres', stores: Stores): Promise<CountedStore> {
  if (store === 'redis') {
    const server = await stores.redis()
    const commands = await countRedisCommands(server.port)
    return {
      place: (index) => ({
        url: `${server.url}/${index + 1}`,
        application: '',
        counter: { count: () => commands.of(index + 1), reset: () => commands.reset() },
      }),
      stopCounting: async () => commands.close(),
    }
  }
  const server = await stores.postgres()
  const statements = await countPostgresStatements(server)
  return {
    place: (index) => {
      const application = `subject-${index + 1}`
      const counter = { count: () => statements.of(application), reset: () => statements.reset() }
      return { url: server.url, application, counter }
    },
    stopCounting: () => statements.close(),
  }
}
