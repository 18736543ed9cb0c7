import { DriverFault } from 'leasehold'
import type { CallOptions, Driver, TaskDriver } from 'leasehold/driver'

export type TaskVerb = (typeof verbs)[number]

interface Sleeper {
  sleep(forMs: number): Promise<void>
}

/** A request as tests look at it. */
export type SeenRequest = Readonly<Record<string, unknown>>

const verbs = [
  'register',
  'claim',
  'refresh',
  'complete',
  'control',
  'poll',
  'inspect',
  'log',
  'purge',
] as const

/** The way of one simulated process to the store, which tests cut, slow down, or make lose answers. */
export class TestLink {
  readonly driver: Driver
  /** Calls that were put to the link, by verb. */
  readonly calls: {
    readonly verb: TaskVerb
    readonly requests: readonly SeenRequest[]
    readonly call: CallOptions
  }[] = []
  /** Nothing gets through. */
  isCut = false
  /** How long a call takes there, and an answer back. */
  lagMs = 0
  readonly #time: Sleeper
  readonly #planned: { readonly verb: TaskVerb; readonly how: 'lose-answer' | 'refuse' | 'hang' | Answer }[] =
    []

  constructor(inner: Driver, time: Sleeper) {
    this.#time = time
    this.driver = {
      ...inner,
      open: (namespace) => {
        const session = inner.open(namespace)
        return {
          locks: session.locks,
          tasks: this.#through(session.tasks),
          close: () => session.close(),
        }
      },
    }
  }

  /** The next calls of a verb are applied but their answers lost, refused unsent, never answered, or answered so. */
  plan(verb: TaskVerb, how: 'lose-answer' | 'refuse' | 'hang' | Answer, times = 1): void {
    for (let i = 0; i < times; i++) this.#planned.push({ verb, how })
  }

  count(verb: TaskVerb): number {
    return this.calls.filter((call) => call.verb === verb).length
  }

  /** The requests of all calls of a verb. */
  requests(verb: TaskVerb): readonly SeenRequest[] {
    return this.calls.filter((call) => call.verb === verb).flatMap(({ requests }) => requests)
  }

  #through(inner: TaskDriver): TaskDriver {
    const wrapped = verbs.map((verb) => {
      const send = inner[verb].bind(inner) as (...args: unknown[]) => Promise<unknown>
      return [verb, (...args: unknown[]) => this.#send(verb, args, () => send(...args))]
    })
    return Object.fromEntries(wrapped) as TaskDriver
  }

  async #send(verb: TaskVerb, args: readonly unknown[], pass: () => Promise<unknown>): Promise<unknown> {
    const single = args.length > 1 ? [args[0] as SeenRequest] : []
    const requests = Array.isArray(args[0]) ? (args[0] as SeenRequest[]) : single
    this.calls.push({ verb, requests, call: args.at(-1) as CallOptions })
    if (this.lagMs > 0) await this.#time.sleep(this.lagMs)
    if (this.isCut) throw new DriverFault('not-sent', 'The test has cut the link.')
    const index = this.#planned.findIndex((planned) => planned.verb === verb)
    const how = index < 0 ? undefined : this.#planned.splice(index, 1)[0]?.how
    if (how === 'refuse') throw new DriverFault('not-sent', 'The test has refused the call.')
    if (how === 'hang') return new Promise(() => {})
    if (typeof how === 'function') return how(pass)
    const answer = await pass()
    if (this.lagMs > 0) await this.#time.sleep(this.lagMs)
    if (how === 'lose-answer' || this.isCut) throw new DriverFault('unknown', 'The test has lost the answer.')
    return answer
  }
}

type Answer = (pass: () => Promise<unknown>) => Promise<unknown>
