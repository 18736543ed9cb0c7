import { DriverFault } from '../src/core/errors.ts'
import type { Driver, DriverSession, LockDriver, NoticeListener, TaskDriver } from '../src/driver/index.ts'
import type { VirtualTime, WorkerClock } from '../test/core/virtual-time.ts'
import type { Clocks, History } from './history.ts'
import { longestDelayMs } from './draw-plan.ts'
import type { CallFault } from './plan.ts'

/** What all lives of a node have in common of the network. */
export interface Port {
  readonly lagMs: number
  /** By the number of the call. */
  readonly faults: ReadonlyMap<number, CallFault>
  calls: number
  notices: number
  /** The node does not reach the store until this moment. */
  cutUntil: number
  cutHangs: boolean
}

export interface LinkOptions {
  readonly driver: Driver
  /** Opens what the link leads to. */
  readonly open: (namespace: string) => DriverSession
  readonly time: VirtualTime
  readonly clock: WorkerClock
  readonly history: History
  readonly port: Port
  readonly by: string
}

/**
 * The way of one life of a node to the store. What it does to a call is in the plan. Answers do not reach a process that
 * stands still; calls that are on their way arrive even if the process that made them is dead.
 */
export class Link {
  readonly driver: Driver
  /** Nothing goes wrong any more. */
  isHealed = false
  /** The process is dead. */
  isDead = false
  openChannels = 0
  readonly #options: LinkOptions
  readonly #undelivered: (() => void)[] = []

  constructor(options: LinkOptions) {
    this.#options = options
    const { abilities, name } = options.driver
    this.driver = {
      name,
      abilities,
      open: (namespace) => {
        const session = options.open(namespace)
        return {
          locks: this.#locks(session.locks),
          tasks: this.#tasks(session.tasks),
          listen: abilities.push ? (listener) => this.#listen(session, listener) : undefined,
          close: () => session.close(),
        }
      },
    }
  }

  /** The process goes on: what has arrived meanwhile reaches it. */
  thaw(): void {
    for (const deliver of this.#undelivered.splice(0)) deliver()
  }

  #locks(locks: LockDriver): LockDriver {
    return {
      acquire: (requests, call) => this.#sendAll('acquire', requests, () => locks.acquire(requests, call)),
      refresh: (requests, call) => this.#sendAll('refresh', requests, () => locks.refresh(requests, call)),
      release: (requests, call) => this.#sendAll('release', requests, () => locks.release(requests, call)),
      revoke: (request, call) => this.#send('revoke', request.key, () => locks.revoke(request, call)),
      peek: (keys, call) => this.#send('peek', keys.join(' '), () => locks.peek(keys, call)),
      scan: (request, call) => this.#send('scan', '', () => locks.scan(request, call)),
      purge: (request, call) => this.#send('purge', '', () => locks.purge(request, call)),
    }
  }

  #tasks(tasks: TaskDriver): TaskDriver {
    return {
      register: (requests, call) => this.#sendAll('register', requests, () => tasks.register(requests, call)),
      claim: (requests, call) => this.#sendAll('claim', requests, () => tasks.claim(requests, call)),
      refresh: (requests, call) =>
        this.#sendAll('refresh-run', requests, () => tasks.refresh(requests, call)),
      complete: (requests, call) => this.#sendAll('complete', requests, () => tasks.complete(requests, call)),
      control: (request, call) => this.#send('control', request.task, () => tasks.control(request, call)),
      poll: (call) => this.#send('poll', '', () => tasks.poll(call)),
      inspect: (names, call) =>
        this.#send('inspect', (names ?? []).join(' '), () => tasks.inspect(names, call)),
      log: (query, call) => this.#send('log', query.task, () => tasks.log(query, call)),
      purge: (request, call) => this.#send('purge-log', '', () => tasks.purge(request, call)),
    }
  }

  async #listen(session: DriverSession, listener: NoticeListener) {
    const { port } = this.#options
    const channel = await this.#send('listen', '', async () => {
      const opened = await session.listen?.({
        onDeaf: (error) => listener.onDeaf(error),
        onNotice: (notice) => {
          // One in eight is lost, the others take their time.
          if (this.isDead || (!this.isHealed && ++port.notices % 8 === 5)) return
          void this.#arrive(port.lagMs).then(() => listener.onNotice(notice))
        },
      })
      if (opened === undefined) throw new DriverFault('unusable', 'No push.')
      return opened
    })
    this.openChannels++
    let isOpen = true
    return {
      probe: () => this.#send('probe', '', () => channel.probe()),
      close: () => {
        if (isOpen) this.openChannels--
        isOpen = false
        return channel.close()
      },
    }
  }

  /** A batch, whose items can be refused, and whose answers about leases are noted when they arrive. */
  async #sendAll<Answer extends { readonly outcome: string }>(
    verb: string,
    requests: readonly { readonly key?: string; readonly task?: string; readonly token?: string }[],
    pass: () => Promise<readonly Answer[]>,
  ): Promise<readonly Answer[]> {
    const { clock, history, by } = this.#options
    const sentAt = clocksOf(clock)
    const what = requests.map(({ key, task }) => key ?? task).join(' ')
    const refuse = (kind: 'busy' | 'failed'): readonly Answer[] =>
      requests.map(() => ({ outcome: kind, error: new Error('Refused, as planned.') }) as unknown as Answer)
    const answers = await this.#send(verb, what, pass, refuse)
    for (const [index, answer] of answers.entries()) {
      const token = requests[index]?.token
      const outcome = toldBy(answer.outcome, verb)
      if (token === undefined || outcome === null) continue
      const forMs = 'remainingMs' in answer ? (answer.remainingMs as number) : 0
      const tookMs = clock.monotonic() - sentAt.monotonic
      history.add({ kind: 'told', by, token, outcome, sentAt, tookMs, forMs })
    }
    return answers
  }

  /** @param refuse an answer that says of every item that it was not carried out */
  async #send<Answer>(
    verb: string,
    what: string,
    pass: () => Promise<Answer>,
    refuse?: (kind: 'busy' | 'failed') => Answer,
  ): Promise<Answer> {
    const { port, time, history, by } = this.#options
    if (this.isDead) return never()
    const number = ++port.calls
    const { lagMs } = port
    const isCutOff = !this.isHealed && time.now < port.cutUntil
    const fault = this.isHealed || isCutOff ? undefined : port.faults.get(number)
    history.add({ kind: 'call', by, number, verb, what, fault: isCutOff ? 'cut-off' : (fault?.kind ?? null) })
    const answered = (answer: Answer): Answer => {
      history.add({ kind: 'answer', by, number })
      return answer
    }
    const carry = async (thereMs: number, backMs: number): Promise<Answer> => {
      if (thereMs > 0) await time.sleep(thereMs)
      const answer = await pass()
      await this.#arrive(backMs)
      return answered(answer)
    }
    const refused = async (kind: DriverFault['kind'], afterMs: number): Promise<never> => {
      await this.#arrive(afterMs)
      throw new DriverFault(kind, 'As planned.')
    }
    if (isCutOff) return port.cutHangs ? never() : refused('not-sent', lagMs + 1)
    if (fault === undefined) return carry(lagMs, lagMs)
    const { delayMs } = fault
    const again = (): void => {
      // Nobody waits for the answer, whatever it is.
      void time.sleep(lagMs + delayMs).then(() => {
        history.add({ kind: 'delivery-again', by, number })
        return pass().catch(() => {})
      })
    }
    switch (fault.kind) {
      case 'refused':
        return refused('not-sent', Math.min(delayMs, 30))
      case 'failed-before':
        return refused('unknown', delayMs)
      case 'lost-answer':
        if (lagMs > 0) await time.sleep(lagMs)
        await pass().catch(() => {})
        return refused('unknown', delayMs)
      case 'late-call':
        return carry(lagMs + delayMs, lagMs)
      case 'late-answer':
        return carry(lagMs, lagMs + delayMs)
      case 'hang-before':
        return never()
      case 'hang-after':
        if (lagMs > 0) await time.sleep(lagMs)
        await pass().catch(() => {})
        return never()
      case 'twice':
        again()
        return carry(lagMs, lagMs)
      case 'sent-again':
        again()
        return refused('unknown', lagMs)
      case 'deadlock':
        return refused('retry', lagMs)
      case 'busy':
      case 'failed-item':
        await this.#arrive(2 * lagMs)
        if (refuse === undefined) return answered(await pass())
        return answered(refuse(fault.kind === 'busy' ? 'busy' : 'failed'))
    }
  }

  /** Reaches the process after so long, but no process that stands still or is dead. */
  async #arrive(afterMs: number): Promise<void> {
    const { time, clock } = this.#options
    if (afterMs > 0) await time.sleep(afterMs)
    while (clock.frozen && !this.isDead) await new Promise<void>((resolve) => this.#undelivered.push(resolve))
    if (this.isDead) await never()
  }
}

/** When everything that was sent by now, and what is sent again of it, has reached the store. */
export const allArrivedMs: number = longestDelayMs + 100

export function clocksOf(clock: WorkerClock): Clocks {
  return { monotonic: clock.monotonic(), wall: clock.wall() }
}

function toldBy(outcome: string, verb: string): 'held' | 'lost' | null {
  if (outcome === 'granted' || outcome === 'takeover') return 'held'
  if (verb !== 'refresh' && verb !== 'refresh-run') return null
  return outcome === 'held' || outcome === 'lost' ? outcome : null
}

function never(): Promise<never> {
  return new Promise(() => {})
}
