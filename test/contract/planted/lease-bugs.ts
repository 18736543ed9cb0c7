import type { LeaseRow } from '../../../src/driver/lease-rules.ts'
import type { PlantedBug } from './planted-bug.ts'

/** Ways in which leases of plain keys have been got wrong. */
export const leaseBugs: readonly PlantedBug[] = [
  {
    id: 'grant-while-held',
    what: 'A key is granted to whoever asks.',
    caughtBy: ['a key that is held is not granted to another token, and the answer says whose it is'],
    plant: ({ locks, table, now }) => ({
      locks: {
        acquire: async (requests, call) => {
          for (const { key, token } of requests) {
            const row = table.leases.get(key)
            if (row !== undefined && row.token !== token)
              table.leases.set(key, { ...row, expiresAt: now() - 1 })
          }
          return locks.acquire(requests, call)
        },
      },
    }),
  },
  {
    id: 'check-then-act',
    what: 'Granting reads first and writes later, so that two who read at once both get the key.',
    caughtBy: [
      'two nodes that want the same hundred new keys at once get each key exactly once',
      'of thirty who want one key at once, one gets it',
    ],
    plant: ({ locks, table, now }) => ({
      locks: {
        acquire: async (requests, call) => {
          const free = requests.map(({ key }) => {
            const row = table.leases.get(key)
            return row === undefined || row.token === null || row.expiresAt <= now()
          })
          await new Promise((done) => setImmediate(done))
          for (const [index, { key }] of requests.entries()) {
            const row = table.leases.get(key)
            if (free[index] === true && row !== undefined) table.leases.set(key, { ...row, token: null })
          }
          return locks.acquire(requests, call)
        },
      },
    }),
  },
  {
    id: 'fence-of-the-loser',
    what: 'The fence counts attempts, not grants: whoever is refused raises the holder’s.',
    caughtBy: ['a failed attempt uses up no fence of the holder'],
    plant: ({ locks, table }) => ({
      locks: {
        acquire: async (requests, call) => {
          const answers = await locks.acquire(requests, call)
          for (const [index, { key }] of requests.entries()) {
            const row = table.leases.get(key)
            if (answers[index]?.outcome === 'held' && row)
              table.leases.set(key, { ...row, fence: row.fence + 1 })
          }
          return answers
        },
      },
    }),
  },
  {
    id: 'fence-loses-digits',
    what: 'Fences are printed with 14 digits, as Lua’s tostring does.',
    caughtBy: ['a thousand grants of one key have a thousand safe, growing fences'],
    plant: ({ locks, table }) => ({
      locks: {
        acquire: async (requests, call) => {
          const answers = await locks.acquire(requests, call)
          return answers.map((answer, index) => {
            if (answer.outcome !== 'granted') return answer
            const fence = Number(answer.fence.toPrecision(14))
            const { key } = requests[index] as { key: string }
            table.leases.set(key, { ...(table.leases.get(key) as LeaseRow), fence })
            return { ...answer, fence }
          })
        },
      },
    }),
  },
  {
    id: 'fence-minted-after-the-grant',
    what: 'The key is granted in one step, and its fence made in the next.',
    caughtBy: ['asked again with the same token, the same lease is granted with the same fence'],
    plant: ({ locks, now }) => {
      let minted = 0
      return {
        locks: {
          acquire: async (requests, call) => {
            const answers = await locks.acquire(requests, call)
            return answers.map((answer) => {
              if (answer.outcome !== 'granted') return answer
              minted = Math.max(minted + 1, Math.floor(now() * 1_000))
              return { ...answer, fence: minted }
            })
          },
        },
      }
    },
  },
  {
    id: 'fence-starts-over-after-purge',
    what: 'Fences count from 1 for each record, and a purge deletes the record.',
    caughtBy: ['fences grow across a purge of the record'],
    plant: ({ locks, table }) => ({
      locks: {
        acquire: async (requests, call) => {
          const before = requests.map(({ key }) => table.leases.get(key))
          const answers = await locks.acquire(requests, call)
          return answers.map((answer, index) => {
            if (answer.outcome !== 'granted') return answer
            const { key, token } = requests[index] as { key: string; token: string }
            const old = before[index]
            const fence = old?.token === token ? old.fence : (old?.fence ?? 0) + 1
            table.leases.set(key, { ...(table.leases.get(key) as LeaseRow), fence })
            return { ...answer, fence }
          })
        },
      },
    }),
  },
  {
    id: 'repeated-acquire-is-refused',
    what: 'Asked again with the same token after a lost answer, the caller is blocked by its own key.',
    caughtBy: ['asked again with the same token, the same lease is granted with the same fence'],
    plant: ({ locks, table, now }) => ({
      locks: {
        acquire: async (requests, call) => {
          const known = requests.map(({ key, token }) => table.leases.get(key)?.token === token)
          const answers = await locks.acquire(requests, call)
          return answers.map((answer, index) => {
            const row = table.leases.get((requests[index] as { key: string }).key)
            if (known[index] !== true || answer.outcome !== 'granted' || row === undefined) return answer
            const { fence, holder, expiresAt } = row
            return { outcome: 'held', fence, holder, remainingMs: expiresAt - now() }
          })
        },
      },
    }),
  },
  {
    id: 'repeated-acquire-mints-a-fence',
    what: 'Asked again with the same token, the lease gets a new fence.',
    caughtBy: ['asked again with the same token, the same lease is granted with the same fence'],
    plant: ({ locks, table }) => ({
      locks: {
        acquire: async (requests, call) => {
          for (const { key, token } of requests) {
            const row = table.leases.get(key)
            if (row?.token === token) table.leases.set(key, { ...row, token: null, spent: null })
          }
          return locks.acquire(requests, call)
        },
      },
    }),
  },
  {
    id: 'repeated-acquire-answers-the-old-grant',
    what: 'Asked again with the same token, the expiry is that of the first time, and the answer says the full ttl.',
    caughtBy: ['asked again with the same token, the expiry is re-armed (M29)'],
    plant: ({ locks, table }) => ({
      locks: {
        acquire: async (requests, call) => {
          const before = requests.map(({ key }) => table.leases.get(key))
          const answers = await locks.acquire(requests, call)
          for (const [index, row] of before.entries()) {
            const { key, token } = requests[index] as { key: string; token: string }
            if (row?.token === token) table.leases.set(key, row)
          }
          return answers
        },
      },
    }),
  },
  {
    id: 'duplicate-key-granted-twice',
    what: 'In a batch that names a key twice, answers are matched by key alone.',
    caughtBy: ['a key named twice in one batch of acquires is granted at most once, and nobody fails'],
    plant: ({ locks }) => ({
      locks: {
        acquire: async (requests, call) => {
          const answers = await locks.acquire(requests, call)
          return answers.map((answer, index) => {
            const { key } = requests[index] as { key: string }
            return (
              answers.find((other, at) => other.outcome === 'granted' && requests[at]?.key === key) ?? answer
            )
          })
        },
      },
    }),
  },
  {
    id: 'duplicate-key-fails-the-batch',
    what: 'A batch that names a key twice is rejected as a whole.',
    caughtBy: ['a key named twice in one batch of acquires is granted at most once, and nobody fails'],
    plant: ({ locks }) => ({
      locks: {
        acquire: async (requests, call) => {
          if (new Set(requests.map(({ key }) => key)).size < requests.length) throw new Error('21000')
          return locks.acquire(requests, call)
        },
      },
    }),
  },
  {
    id: 'answers-in-key-order',
    what: 'The answers of a batch come in the order of the keys.',
    caughtBy: ['acquires are answered item by item, in order'],
    plant: ({ locks }) => ({
      locks: {
        acquire: async (requests, call) => {
          const answers = await locks.acquire(requests, call)
          const order = requests
            .map(({ key }, index) => ({ key, index }))
            .toSorted((a, b) => (a.key < b.key ? -1 : 1))
          return order.map(({ index }) => answers[index] as (typeof answers)[number])
        },
      },
    }),
  },
  {
    id: 'refresh-shortens',
    what: 'A refresh sets the expiry to the ttl from now, also if that is sooner.',
    caughtBy: [
      'a refresh never shortens the lease',
      'an old heartbeat that lands after a longer one does not move the expiry back',
    ],
    plant: ({ locks, table, now }) => ({
      locks: {
        refresh: async (requests, call) => {
          const answers = await locks.refresh(requests, call)
          return answers.map((answer, index) => {
            const { key, ttlMs } = requests[index] as { key: string; ttlMs: number }
            const row = table.leases.get(key)
            if (answer.outcome !== 'held' || row === undefined) return answer
            table.leases.set(key, { ...row, expiresAt: now() + ttlMs })
            return { outcome: 'held', remainingMs: ttlMs }
          })
        },
      },
    }),
  },
  {
    id: 'refresh-answers-the-ttl',
    what: 'A refresh answers the ttl that was asked for, not what the store has.',
    caughtBy: ['a refresh answers what the store has, not what was asked for'],
    plant: ({ locks }) => ({
      locks: {
        refresh: async (requests, call) =>
          (await locks.refresh(requests, call)).map((answer, index) =>
            answer.outcome === 'held' ? { ...answer, remainingMs: requests[index]?.ttlMs ?? 0 } : answer,
          ),
      },
    }),
  },
  {
    id: 'refresh-is-an-upsert',
    what: 'A refresh of a record that is not there creates it.',
    caughtBy: ['a refresh never creates a lease (N21)', 'a refresh of a key that never was is lost'],
    plant: ({ locks, table }) => ({
      locks: {
        refresh: async (requests, call) => {
          for (const { key, token, ttlMs } of requests) {
            if (table.leases.has(key)) continue
            await locks.acquire([{ key, token, ttlMs, holder: '{}', waitingMs: 0 }], call)
          }
          return locks.refresh(requests, call)
        },
      },
    }),
  },
  {
    id: 'refresh-revives-the-lapsed',
    what: 'A refresh compares the token only, and renews a lease that has expired.',
    caughtBy: ['a refresh after the lapse is lost, although nobody took the key (N21)'],
    plant: ({ locks, table, now }) => ({
      locks: {
        refresh: async (requests, call) => {
          for (const { key, token } of requests) {
            const row = table.leases.get(key)
            if (row?.token === token)
              table.leases.set(key, { ...row, expiresAt: Math.max(row.expiresAt, now() + 5) })
          }
          return locks.refresh(requests, call)
        },
      },
    }),
  },
  {
    id: 'refresh-without-token',
    what: 'A refresh does not compare the token.',
    caughtBy: ['a refresh under another token is lost, and the holder is untouched (M20)'],
    plant: ({ locks, table }) => ({
      locks: {
        refresh: (requests, call) =>
          locks.refresh(
            requests.map((request) => ({
              ...request,
              token: table.leases.get(request.key)?.token ?? request.token,
            })),
            call,
          ),
      },
    }),
  },
  {
    id: 'release-without-token',
    what: 'A release frees the key whoever holds it.',
    caughtBy: [
      'a release under another token is lost, and the holder is untouched',
      'a stale release never frees the successor’s lease (N27, M6)',
    ],
    plant: ({ locks, table }) => ({
      locks: {
        release: (requests, call) =>
          locks.release(
            requests.map((request) => ({
              ...request,
              token: table.leases.get(request.key)?.token ?? request.token,
            })),
            call,
          ),
      },
    }),
  },
  {
    id: 'release-is-not-idempotent',
    what: 'A release that is sent again answers lost.',
    caughtBy: ['a release that is sent again answers released again (N2)'],
    plant: ({ locks, table }) => ({
      locks: {
        release: async (requests, call) => {
          const spent = requests.map(({ key, token }) => table.leases.get(key)?.spent === token)
          const answers = await locks.release(requests, call)
          return answers.map((answer, index) => (spent[index] === true ? { outcome: 'lost' } : answer))
        },
      },
    }),
  },
  {
    id: 'release-throws-when-lapsed',
    what: 'A release of a lapsed lease rejects.',
    caughtBy: ['a release after the lapse answers lost, and the key stays free (N1, N2)'],
    plant: ({ locks, table, now }) => ({
      locks: {
        release: async (requests, call) => {
          for (const { key, token } of requests) {
            const row = table.leases.get(key)
            if (row?.token === token && row.expiresAt <= now()) throw new Error('The lock has expired.')
          }
          return locks.release(requests, call)
        },
      },
    }),
  },
  {
    id: 'spent-token-accepted',
    what: 'A record does not remember the token it released: a delayed acquire is granted.',
    caughtBy: ['the token that was released is spent: an acquire that comes late is not granted'],
    plant: ({ locks, table }) => ({
      locks: {
        acquire: (requests, call) => {
          for (const { key } of requests) {
            const row = table.leases.get(key)
            if (row !== undefined) table.leases.set(key, { ...row, spent: null })
          }
          return locks.acquire(requests, call)
        },
      },
    }),
  },
  {
    id: 'spent-token-forgotten-by-the-next-grant',
    what: 'The memory of the spent token is erased as soon as another is granted.',
    caughtBy: ['a spent token is not granted after others held the key and lapsed'],
    plant: ({ locks, table }) => ({
      locks: {
        acquire: async (requests, call) => {
          const answers = await locks.acquire(requests, call)
          for (const [index, { key }] of requests.entries()) {
            const row = table.leases.get(key)
            if (answers[index]?.outcome === 'granted' && row) table.leases.set(key, { ...row, spent: null })
          }
          return answers
        },
      },
    }),
  },
  {
    id: 'forty-days-overflow',
    what: 'A ttl is kept in 32 bits of milliseconds.',
    caughtBy: ['a lease of forty days is a lease of forty days (N15)'],
    plant: ({ locks }) => ({
      locks: {
        acquire: (requests, call) =>
          locks.acquire(
            requests.map((request) => ({ ...request, ttlMs: Math.min(request.ttlMs, 2 ** 31 - 1) })),
            call,
          ),
      },
    }),
  },
  {
    id: 'expiry-on-the-caller’s-clock',
    what: 'The expiry is computed from the wall clock of whoever asks.',
    needs: 'server clock',
    caughtBy: [
      'a node an hour behind gets the ttl it asks for',
      'a node an hour ahead gets the ttl it asks for',
    ],
    plant: ({ locks, table }) => ({
      locks: {
        acquire: async (requests, call) => {
          const answers = await locks.acquire(requests, call)
          for (const [index, { key, ttlMs }] of requests.entries()) {
            const row = table.leases.get(key)
            if (answers[index]?.outcome === 'granted' && row) {
              table.leases.set(key, { ...row, expiresAt: Math.max(row.acquiredAt, Date.now() + ttlMs) })
            }
          }
          return answers
        },
      },
    }),
  },
  {
    id: 'held-on-the-caller’s-clock',
    what: 'Whether a lease has expired is judged by the wall clock of whoever asks.',
    needs: 'server clock',
    caughtBy: ['a node an hour ahead is kept out as long as everybody else (N24)'],
    plant: ({ locks, table }) => ({
      locks: {
        acquire: (requests, call) => {
          for (const { key } of requests) {
            const row = table.leases.get(key)
            if (row !== undefined && row.expiresAt <= Date.now())
              table.leases.set(key, { ...row, expiresAt: 0 })
          }
          return locks.acquire(requests, call)
        },
      },
    }),
  },
  {
    id: 'fence-on-the-caller’s-clock',
    what: 'The fence is the wall clock of whoever asks.',
    needs: 'server clock',
    caughtBy: ['a node an hour ahead mints fences that fit in with the others'],
    plant: ({ locks, table }) => ({
      locks: {
        acquire: async (requests, call) => {
          const answers = await locks.acquire(requests, call)
          return answers.map((answer, index) => {
            const { key } = requests[index] as { key: string }
            const row = table.leases.get(key)
            if (answer.outcome !== 'granted' || row === undefined) return answer
            const fence = Math.max(answer.fence, Date.now() * 1_000)
            table.leases.set(key, { ...row, fence })
            table.floor = Math.max(table.floor, fence)
            return { ...answer, fence }
          })
        },
      },
    }),
  },
]
