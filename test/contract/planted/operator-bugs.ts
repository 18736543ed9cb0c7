import type { PlantedBug } from './planted-bug.ts'

/** Ways in which waiting, revoking, looking and purging have been got wrong. */
export const operatorBugs: readonly PlantedBug[] = [
  {
    id: 'wait-not-marked',
    what: 'A waiter leaves no mark in the record, so the release wakes nobody.',
    needs: 'push',
    caughtBy: [
      'a waiter that finds the key held marks the lease as awaited',
      'the release of an awaited key wakes who listens',
    ],
    plant: ({ locks }) => ({
      locks: {
        acquire: (requests, call) =>
          locks.acquire(
            requests.map((request) => ({ ...request, waitingMs: 0 })),
            call,
          ),
      },
    }),
  },
  {
    id: 'short-wait-erases-long-one',
    what: 'The mark of a waiter is set to its own time, also if that is sooner than another’s.',
    caughtBy: ['a short wait does not take away the mark of a longer one'],
    plant: ({ locks, table, now }) => ({
      locks: {
        acquire: async (requests, call) => {
          const answers = await locks.acquire(requests, call)
          for (const [index, { key, waitingMs }] of requests.entries()) {
            const row = table.leases.get(key)
            if (answers[index]?.outcome !== 'held' || row === undefined || waitingMs === 0) continue
            table.leases.set(key, { ...row, waitingUntil: now() + waitingMs })
          }
          return answers
        },
      },
    }),
  },
  {
    id: 'notify-always',
    what: 'Every release notifies, whether somebody waits or not.',
    needs: 'push',
    caughtBy: ['a release that nobody waits for says nothing'],
    plant: ({ locks, table, now }) => ({
      locks: {
        release: (requests, call) => {
          for (const { key, token } of requests) {
            const row = table.leases.get(key)
            if (row?.token === token) table.leases.set(key, { ...row, waitingUntil: now() + 1_000 })
          }
          return locks.release(requests, call)
        },
      },
    }),
  },
  {
    id: 'revoke-without-compare',
    what: 'A revocation takes the key from whoever holds it by now.',
    caughtBy: ['a revocation compares the fence: it never hits another holder than the operator saw'],
    plant: ({ locks, table }) => ({
      locks: {
        revoke: (request, call) =>
          locks.revoke({ ...request, fence: table.leases.get(request.key)?.fence ?? request.fence }, call),
      },
    }),
  },
  {
    id: 'revoke-frees-at-once',
    what: 'A revocation frees the key although the holder has not confirmed.',
    caughtBy: ['a revoked key stays closed until its holder has released it'],
    plant: ({ locks }) => ({
      locks: {
        revoke: async (request, call) => {
          const answer = await locks.revoke({ ...request, immediate: true }, call)
          return answer.outcome === 'released' ? { outcome: 'revoked', remainingMs: 59_000 } : answer
        },
      },
    }),
  },
  {
    id: 'revoked-lease-is-renewed',
    what: 'A refresh says that the lease is revoked, but prolongs it.',
    caughtBy: ['a refresh does not prolong a revoked lease'],
    plant: ({ locks, table, now }) => ({
      locks: {
        refresh: async (requests, call) => {
          const answers = await locks.refresh(requests, call)
          for (const { key, token, ttlMs } of requests) {
            const row = table.leases.get(key)
            if (row?.token === token && row.revoked) {
              table.leases.set(key, { ...row, expiresAt: Math.max(row.expiresAt, now() + ttlMs) })
            }
          }
          return answers
        },
      },
    }),
  },
  {
    id: 'revocation-is-inherited',
    what: 'The next lease of a key that was revoked is revoked as well.',
    caughtBy: ['the lease after a revoked one that lapsed is not revoked either'],
    plant: ({ locks, table }) => ({
      locks: {
        acquire: async (requests, call) => {
          const revoked = requests.map(({ key }) => table.leases.get(key)?.revoked === true)
          const answers = await locks.acquire(requests, call)
          for (const [index, { key }] of requests.entries()) {
            const row = table.leases.get(key)
            if (answers[index]?.outcome === 'granted' && revoked[index] === true && row) {
              table.leases.set(key, { ...row, revoked: true })
            }
          }
          return answers
        },
      },
    }),
  },
  {
    id: 'peek-shows-the-lapsed',
    what: 'What has lapsed and was not taken is shown as held.',
    caughtBy: ['what nobody holds is null: never asked for, released, or lapsed'],
    plant: ({ locks, table, now }) => ({
      locks: {
        peek: async (keys, call) => {
          const records = await locks.peek(keys, call)
          return records.map((record, index) => {
            const key = keys[index] as string
            const row = table.leases.get(key)
            if (record !== null || row === undefined || row.token === null) return record
            const { fence, holder, acquiredAt, expiresAt, revoked } = row
            const remainingMs = expiresAt - now()
            return { key, fence, holder, acquiredAt, expiresAt, remainingMs, awaited: false, revoked }
          })
        },
      },
    }),
  },
  {
    id: 'peek-shows-the-token',
    what: 'Operators are shown the ownership secret.',
    caughtBy: ['the token is never shown'],
    plant: ({ locks, table }) => ({
      locks: {
        peek: async (keys, call) =>
          (await locks.peek(keys, call)).map((record) => {
            return record && { ...record, token: table.leases.get(record.key)?.token }
          }),
      },
    }),
  },
  {
    id: 'scan-ignores-the-prefix',
    what: 'A scan shows all keys, whatever the prefix.',
    caughtBy: ['a prefix selects the keys that begin with it'],
    plant: ({ locks }) => ({
      locks: { scan: (request, call) => locks.scan({ ...request, prefix: '' }, call) },
    }),
  },
  {
    id: 'scan-takes-wildcards',
    what: 'A scan takes % and _ in the prefix for wildcards.',
    caughtBy: ['a prefix stands for itself, whatever the store takes for a wildcard'],
    plant: ({ locks }) => ({
      locks: {
        scan: async ({ prefix, limit, cursor }, call) => {
          const pattern = prefix.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
          const like = new RegExp(`^${pattern.replaceAll('%', '.*').replaceAll('_', '.')}`, 'su')
          const page = await locks.scan({ prefix: '', limit, cursor }, call)
          return { ...page, records: page.records.filter(({ key }) => like.test(key)) }
        },
      },
    }),
  },
  {
    id: 'scan-pages-by-offset',
    what: 'The cursor of a scan is a number of records, so that what moves up is never shown.',
    caughtBy: ['a scan goes on although the lease its page ended with is gone'],
    plant: ({ locks }) => ({
      locks: {
        scan: async ({ prefix, limit, cursor }, call) => {
          const { records } = await locks.scan({ prefix, limit: 10_000, cursor: null }, call)
          const start = Number(cursor ?? 0)
          const end = start + limit
          return { records: records.slice(start, end), cursor: end < records.length ? String(end) : null }
        },
      },
    }),
  },
  {
    id: 'keys-without-case',
    what: 'Keys are compared without regard to case.',
    caughtBy: ['keys that differ only in case, in space, or in how an accent is written, are different keys'],
    plant: ({ locks }) => ({
      locks: {
        acquire: (requests, call) =>
          locks.acquire(
            requests.map((request) => ({ ...request, key: request.key.toLowerCase() })),
            call,
          ),
        release: (requests, call) =>
          locks.release(
            requests.map((request) => ({ ...request, key: request.key.toLowerCase() })),
            call,
          ),
      },
    }),
  },
  {
    id: 'keys-without-trailing-space',
    what: 'Keys are compared without regard to trailing space.',
    caughtBy: ['keys that differ only in case, in space, or in how an accent is written, are different keys'],
    plant: ({ locks }) => ({
      locks: {
        acquire: (requests, call) =>
          locks.acquire(
            requests.map((request) => ({ ...request, key: request.key.replace(/ +$/, '') })),
            call,
          ),
      },
    }),
  },
  {
    id: 'namespace-joined-by-colon',
    what: 'Namespace and key are joined by a colon, so that two pairs can mean one record.',
    caughtBy: ['namespace and key are joined without ambiguity'],
    plant: ({ namespace, elsewhere }) => {
      const { locks } = elsewhere('joined')
      const joined = <Request extends { readonly key: string }>(request: Request): Request => ({
        ...request,
        key: `${namespace}:${request.key}`,
      })
      return { locks: { acquire: (requests, call) => locks.acquire(requests.map(joined), call) } }
    },
  },
  {
    id: 'purge-takes-the-held',
    what: 'A purge deletes records by age, held or not.',
    caughtBy: ['a purge never touches what is held'],
    plant: ({ table }) => ({
      locks: {
        purge: async ({ limit }) => {
          const keys = [...table.leases.keys()].slice(0, limit)
          for (const key of keys) table.leases.delete(key)
          return keys.length
        },
      },
    }),
  },
  {
    id: 'purge-ignores-the-retention',
    what: 'A purge deletes what was released a moment ago.',
    caughtBy: ['a purge leaves young records: what was released lately is still remembered'],
    plant: ({ locks }) => ({
      locks: { purge: (request, call) => locks.purge({ ...request, retentionMs: 0 }, call) },
    }),
  },
  {
    id: 'purge-loses-fences-ahead',
    what: 'A purge deletes a record whose fence is ahead of the clock.',
    needs: 'raw',
    caughtBy: ['a record whose fence is ahead of the store’s clock is never purged'],
    plant: ({ table, now }) => ({
      locks: {
        purge: async ({ limit, retentionMs }) => {
          const free = [...table.leases]
            .filter(([, row]) => row.expiresAt + retentionMs <= now())
            .slice(0, limit)
          for (const [key] of free) table.leases.delete(key)
          return free.length
        },
      },
    }),
  },
  {
    id: 'purge-ignores-the-limit',
    what: 'A purge deletes everything at once, whatever its limit.',
    caughtBy: ['a purge deletes no more than its limit, and no less if there is more'],
    plant: ({ locks }) => ({
      locks: { purge: (request, call) => locks.purge({ ...request, limit: 1_000_000 }, call) },
    }),
  },
]
