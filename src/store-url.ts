import type { Duration } from './core/duration.ts'
import { InvalidOptionError } from './core/errors.ts'

/** What the query of a store URL may say to us; everything else in it is for the client library. */
const queryNames = [
  'namespace',
  'ttl',
  'requestTimeout',
  'client',
  'schema',
  'tablePrefix',
  'prefix',
] as const

export type StoreQuery = Partial<Record<(typeof queryNames)[number], string>>

export const expectedUrl: string =
  "It must begin with memory:, sqlite:, postgres:, redis: or rediss:, as in 'redis://localhost:6379'."

/** @throws InvalidOptionError. The message never repeats the URL: it may hold a password. */
export function parseStoreUrl(url: string): URL {
  if (typeof url !== 'string' || !URL.canParse(url)) {
    throw new InvalidOptionError(
      'url',
      `The store URL ${url === '' ? 'is empty: is the environment variable set?' : 'cannot be read.'} ${expectedUrl}`,
    )
  }
  return new URL(url)
}

/** Takes our own parameters out of a URL's query; what is left in it is the client library's. */
export function takeQuery(url: URL): StoreQuery {
  const query: StoreQuery = {}
  for (const name of queryNames) {
    const value = url.searchParams.get(name)
    if (value === null) continue
    query[name] = value
    url.searchParams.delete(name)
  }
  return query
}

/** For stores without a client library: nothing else may be in the query, so a misspelt name is noticed. */
export function refuseOtherParameters(url: URL): void {
  const [name] = url.searchParams.keys()
  if (name !== undefined) {
    throw new InvalidOptionError(
      name,
      `The store URL has no parameter ${JSON.stringify(name)}. Known: ${queryNames.join(', ')}.`,
    )
  }
}

/** The service's defaults that a query sets. Their values are checked where all options are. */
export function serviceDefaults({ namespace, ttl, requestTimeout }: StoreQuery): {
  namespace?: string
  ttl?: Duration
  requestTimeout?: Duration
} {
  return {
    ...(namespace === undefined ? {} : { namespace }),
    ...(ttl === undefined ? {} : { ttl: ttl as Duration }),
    ...(requestTimeout === undefined ? {} : { requestTimeout: requestTimeout as Duration }),
  }
}

/** A URL for messages: without user, password and query. */
export function shownUrl(url: URL): string {
  return `${url.protocol}${url.host === '' ? '' : `//${url.host}`}${url.pathname}`
}
