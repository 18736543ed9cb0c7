import { memoryDriver, type MemoryDriverOptions } from 'leasehold/memory'
import type { CallOptions, Driver, DriverAbilities, LockDriver } from 'leasehold/driver'

/** One call that reached the driver. */
export interface WatchedCall {
  readonly verb: keyof LockDriver | 'listen'
  /** The items of a batch, or the one request. */
  readonly items: readonly Item[]
  readonly call: CallOptions | undefined
}

/** What tests look at in a request, of whatever verb. */
export interface Item {
  readonly key?: string
  readonly token?: string
  readonly ttlMs?: number
  readonly waitingMs?: number
}

/** What happens to a call: it is passed on to the store, or not, or something else is answered. */
export type Treatment = (pass: () => Promise<unknown>, seen: WatchedCall) => Promise<unknown>

export interface WatchedDriver extends Driver {
  /** What reached it since it was made or {@link forget} was called, in order. */
  readonly calls: readonly WatchedCall[]
  /** How many calls of these verbs; of all, if none is named. */
  count(...verbs: readonly WatchedCall['verb'][]): number
  /** The calls of one verb. */
  of(verb: WatchedCall['verb']): readonly WatchedCall[]
  forget(): void
  /** What happens to the next calls of a verb, one each. */
  plan(verb: WatchedCall['verb'], ...treatments: readonly Treatment[]): void
  /** What happens to all calls of a verb that nothing is planned for; of all verbs. */
  always(verb: WatchedCall['verb'] | 'everything', treatment: Treatment): void
  /** Nothing is planned any more: every call passes. */
  heal(): void
}

export interface WatchedDriverOptions extends MemoryDriverOptions {
  readonly abilities?: Partial<DriverAbilities>
  /** Default true: the session has a push channel. */
  readonly push?: boolean
}

let stores = 0

/** The in-process driver on a table of its own, with every call counted and open to interference. */
export function watchedDriver(options: WatchedDriverOptions = {}): WatchedDriver {
  const { abilities, push = true, ...memory } = options
  const inner = memoryDriver({ store: `watched ${++stores}`, ...memory })
  const calls: WatchedCall[] = []
  const planned: { verb: WatchedCall['verb']; treatment: Treatment }[] = []
  const standing = new Map<WatchedCall['verb'] | 'everything', Treatment>()

  const watch = async <Answer>(seen: WatchedCall, pass: () => Promise<Answer>): Promise<Answer> => {
    calls.push(seen)
    const next = planned.findIndex(({ verb }) => verb === seen.verb)
    const treatment =
      next >= 0
        ? planned.splice(next, 1)[0]?.treatment
        : (standing.get(seen.verb) ?? standing.get('everything'))
    return treatment === undefined ? pass() : ((await treatment(pass, seen)) as Answer)
  }

  return {
    name: 'watched',
    abilities: { ...inner.abilities, push, ...abilities },
    open(namespace) {
      const session = inner.open(namespace)
      const { locks, listen } = session
      const batch =
        <Request extends Item, Answer>(
          verb: WatchedCall['verb'],
          send: (requests: readonly Request[], call: CallOptions) => Promise<Answer>,
        ) =>
        (items: readonly Request[], call: CallOptions) =>
          watch({ verb, items, call }, () => send(items, call))
      const one =
        <Request extends object, Answer>(
          verb: WatchedCall['verb'],
          send: (request: Request, call: CallOptions) => Promise<Answer>,
        ) =>
        (request: Request, call: CallOptions) =>
          watch({ verb, items: [request], call }, () => send(request, call))
      return {
        tasks: session.tasks,
        close: () => session.close(),
        locks: {
          acquire: batch('acquire', locks.acquire),
          refresh: batch('refresh', locks.refresh),
          release: batch('release', locks.release),
          revoke: one('revoke', locks.revoke),
          peek: (keys, call) =>
            watch({ verb: 'peek', items: keys.map((key) => ({ key })), call }, () => locks.peek(keys, call)),
          scan: one('scan', locks.scan),
          purge: one('purge', locks.purge),
        },
        ...(push && listen !== undefined
          ? {
              listen: (listener) =>
                watch({ verb: 'listen', items: [], call: undefined }, () => listen(listener)),
            }
          : {}),
      }
    },
    get calls() {
      return calls
    },
    count: (...verbs) => calls.filter(({ verb }) => verbs.length === 0 || verbs.includes(verb)).length,
    forget: () => {
      calls.length = 0
    },
    of: (wanted) => calls.filter(({ verb }) => verb === wanted),
    plan: (verb, ...treatments) => {
      planned.push(...treatments.map((treatment) => ({ verb, treatment })))
    },
    always: (verb, treatment) => {
      standing.set(verb, treatment)
    },
    heal: () => {
      planned.length = 0
      standing.clear()
    },
  }
}
