import { DriverFault, type DriverFaultKind, InvalidOptionError } from '../core/errors.ts'
import { holds } from '../core/read-options.ts'
import type { Driver, DriverSession, LockDriver, NoticeChannel, TaskDriver } from '../driver/index.ts'

/** The calls that can be made to fail. Those of tasks that plain leases have as well are called after runs. */
export type FaultyVerb =
  | keyof LockDriver
  | Exclude<keyof TaskDriver, 'refresh' | 'purge'>
  | 'refreshRun'
  | 'purgeLog'
  | 'listen'
  | 'probe'

/** A call that the test holds in its hands. */
export interface HeldCall {
  /** Resolves when a call has come and is held. */
  readonly arrived: Promise<void>
  /** Lets it go on. */
  letGo(): void
}

/** What is to happen to one call, or to all calls, of a verb. */
export interface FaultPlan {
  /** The call is not made: it rejects, by default as certainly not applied. */
  fail(kind?: DriverFaultKind): void
  /** The call is applied and its answer is lost: it rejects, and nobody knows whether it was applied. */
  loseAnswer(): void
  /** The call waits before it reaches the store, as in a slow network. */
  holdRequest(): HeldCall
  /** The call is applied, and its answer waits. */
  holdAnswer(): HeldCall
  /** The call neither reaches the store nor ends, ever. */
  hang(): void
  /** The call is applied, and neither answered nor ended, ever. */
  hangAfter(): void
  /** The call reaches the store twice, as from a client that sends again by itself; the first answer counts. */
  deliverTwice(): void
  /** The call is made as it should, and reaches the store once more when the test lets it go. */
  deliverAgainLater(): HeldCall
  /** Something else is done: `pass` makes the call. */
  do(treatment: (pass: () => Promise<unknown>) => Promise<unknown>): void
}

/** Says what goes wrong. What was said first happens first; calls of which nothing is said pass. */
export interface Faults {
  /** What happens to the next call of the verb that nothing is planned for yet. */
  next(verb: FaultyVerb): FaultPlan
  /** What happens to every call of the verb for which no other plan is left. */
  always(verb: FaultyVerb): FaultPlan
  /** Takes back everything that is planned. Calls that hang go on hanging, calls that are held stay so. */
  heal(): void
  /** How many calls of the verb were made, whatever became of them; of all verbs, if none is named. */
  calls(verb?: FaultyVerb): number
}

export interface FaultyDriver {
  readonly driver: Driver
  readonly faults: Faults
}

type Treatment = (pass: () => Promise<unknown>) => Promise<unknown>

/**
 * A driver that goes wrong when it is told to, around one that does not.
 *
 * @example
 * ```ts
 * const { driver, faults } = faultyDriver(memoryDriver())
 * const locks = new LockService({ driver })
 * const lease = await locks.acquire('key')
 * faults.next('refresh').loseAnswer()
 * await lease.extend('1m')
 * ```
 */
export function faultyDriver(inner: Driver): FaultyDriver {
  if (!holds(() => isDriver(inner))) {
    throw new InvalidOptionError('inner', 'inner must be a driver, such as memoryDriver().')
  }
  const script = new FaultScript()
  const driver: Driver = {
    name: inner.name,
    abilities: inner.abilities,
    open: (namespace) => faultySession(inner.open(namespace), script),
  }
  return { driver, faults: script }
}

function isDriver({ name, abilities, open }: Driver): boolean {
  return typeof name === 'string' && typeof abilities === 'object' && typeof open === 'function'
}

class FaultScript implements Faults {
  readonly #counts = new Map<FaultyVerb, number>()
  readonly #planned: { readonly verb: FaultyVerb; readonly treatment: Treatment }[] = []
  readonly #standing = new Map<FaultyVerb, Treatment>()

  next(verb: FaultyVerb): FaultPlan {
    assertVerb(verb)
    return planOf((treatment) => this.#planned.push({ verb, treatment }))
  }

  always(verb: FaultyVerb): FaultPlan {
    assertVerb(verb)
    return planOf((treatment) => this.#standing.set(verb, treatment))
  }

  heal(): void {
    this.#planned.length = 0
    this.#standing.clear()
  }

  calls(verb?: FaultyVerb): number {
    if (verb !== undefined) return this.#counts.get(verb) ?? 0
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
  }

  async treat<Answer>(verb: FaultyVerb, pass: () => Promise<Answer>): Promise<Answer> {
    this.#counts.set(verb, this.calls(verb) + 1)
    const position = this.#planned.findIndex((plan) => plan.verb === verb)
    const planned = position < 0 ? undefined : this.#planned.splice(position, 1)[0]
    const treatment = planned?.treatment ?? this.#standing.get(verb)
    return treatment === undefined ? pass() : ((await treatment(pass)) as Answer)
  }
}

/** All of them. The value says nothing. */
const verbs: Readonly<Record<FaultyVerb, true>> = {
  acquire: true,
  refresh: true,
  release: true,
  revoke: true,
  peek: true,
  scan: true,
  purge: true,
  register: true,
  claim: true,
  refreshRun: true,
  complete: true,
  control: true,
  poll: true,
  inspect: true,
  log: true,
  purgeLog: true,
  listen: true,
  probe: true,
}

/** A fault that is planned for a misspelt verb would never happen. @throws InvalidOptionError */
function assertVerb(verb: FaultyVerb): void {
  if (typeof verb === 'string' && Object.hasOwn(verbs, verb)) return
  throw new InvalidOptionError('verb', `verb must be one of ${Object.keys(verbs).join(', ')}.`)
}

function planOf(set: (treatment: Treatment) => void): FaultPlan {
  return {
    fail: (kind = 'not-sent') =>
      set(async () => {
        throw new DriverFault(kind, `A planned fault: the call was not made (${kind}).`)
      }),
    loseAnswer: () =>
      set(async (pass) => {
        await pass()
        throw new DriverFault('unknown', 'A planned fault: the answer was lost.')
      }),
    holdRequest: () => {
      const gate = newGate()
      set(async (pass) => {
        await gate.pass()
        return pass()
      })
      return gate.held
    },
    holdAnswer: () => {
      const gate = newGate()
      set(async (pass) => {
        const answer = await pass()
        await gate.pass()
        return answer
      })
      return gate.held
    },
    hang: () => set(() => never()),
    hangAfter: () =>
      set(async (pass) => {
        await pass()
        return never()
      }),
    deliverTwice: () =>
      set(async (pass) => {
        const answer = await pass()
        await pass()
        return answer
      }),
    deliverAgainLater: () => {
      const gate = newGate()
      set(async (pass) => {
        const answer = await pass()
        // Whatever comes of it, nobody waits for the second answer.
        void gate
          .pass()
          .then(pass)
          .catch(() => {})
        return answer
      })
      return gate.held
    },
    do: set,
  }
}

function newGate(): { readonly held: HeldCall; readonly pass: () => Promise<void> } {
  let arrive = (): void => {}
  let letGo = (): void => {}
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve
  })
  const opened = new Promise<void>((resolve) => {
    letGo = resolve
  })
  return {
    held: { arrived, letGo },
    pass: () => {
      arrive()
      return opened
    },
  }
}

function never(): Promise<never> {
  return new Promise<never>(() => {})
}

function faultySession(session: DriverSession, script: FaultScript): DriverSession {
  const { locks, tasks, listen } = session
  return {
    locks: {
      acquire: (requests, call) => script.treat('acquire', () => locks.acquire(requests, call)),
      refresh: (requests, call) => script.treat('refresh', () => locks.refresh(requests, call)),
      release: (requests, call) => script.treat('release', () => locks.release(requests, call)),
      revoke: (request, call) => script.treat('revoke', () => locks.revoke(request, call)),
      peek: (keys, call) => script.treat('peek', () => locks.peek(keys, call)),
      scan: (request, call) => script.treat('scan', () => locks.scan(request, call)),
      purge: (request, call) => script.treat('purge', () => locks.purge(request, call)),
    },
    tasks: {
      register: (requests, call) => script.treat('register', () => tasks.register(requests, call)),
      claim: (requests, call) => script.treat('claim', () => tasks.claim(requests, call)),
      refresh: (requests, call) => script.treat('refreshRun', () => tasks.refresh(requests, call)),
      complete: (requests, call) => script.treat('complete', () => tasks.complete(requests, call)),
      control: (request, call) => script.treat('control', () => tasks.control(request, call)),
      poll: (call) => script.treat('poll', () => tasks.poll(call)),
      inspect: (names, call) => script.treat('inspect', () => tasks.inspect(names, call)),
      log: (query, call) => script.treat('log', () => tasks.log(query, call)),
      purge: (request, call) => script.treat('purgeLog', () => tasks.purge(request, call)),
    },
    listen:
      listen &&
      ((listener) =>
        script.treat('listen', async () => faultyChannel(await listen.call(session, listener), script))),
    close: () => session.close(),
  }
}

function faultyChannel(channel: NoticeChannel, script: FaultScript): NoticeChannel {
  return {
    probe: () => script.treat('probe', () => channel.probe()),
    close: () => channel.close(),
  }
}
