// Starts test/programs/worker.ts as a process, and ends it when the test has ended.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import type { WorkerAbilities, WorkerAnswer, WorkerEvent, WorkerSettings } from '../programs/worker.ts'
import { startProgram } from '../support/programs.ts'

type EventName = WorkerEvent['event']
type EventOf<Name extends EventName> = Extract<WorkerEvent, { event: Name }>
type Call = <Name extends keyof WorkerAbilities>(
  name: Name,
  ...args: Parameters<WorkerAbilities[Name]>
) => ReturnType<WorkerAbilities[Name]>

/** What a worker answered an order with, when that failed. */
class WorkerError extends Error {
  readonly code: string

  constructor({ code, message }: { code: string; message: string }) {
    super(message)
    this.code = code
  }
}

export class Worker {
  /** Resolves with the exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>
  readonly #child: ChildProcess
  readonly #events: WorkerEvent[] = []
  readonly #watchers = new Set<() => void>()
  readonly #open = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  #orders = 0

  static async start(settings: WorkerSettings): Promise<Worker> {
    const worker = new Worker(startProgram('worker', [JSON.stringify(settings)]))
    onTestFinished(async () => void (await worker.kill()))
    await worker.told('ready')
    return worker
  }

  constructor(child: ChildProcess) {
    this.#child = child
    this.ended = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | string)
    child.on('message', (message) => this.#hear(message as WorkerEvent | WorkerAnswer))
    child.on('error', () => {})
    void this.ended.then((how) => {
      for (const { reject } of this.#open.values()) reject(new Error(`The worker has ended: ${how}.`))
    })
  }

  /** Gives an order and answers what it came to. @throws WorkerError */
  readonly call: Call = (name, ...args) =>
    new Promise<unknown>((resolve, reject) => {
      const id = ++this.#orders
      this.#open.set(id, { resolve, reject })
      this.#child.send({ id, name, args })
    }) as ReturnType<WorkerAbilities[typeof name]>

  /** Resolves with the first event of this name, also one that has come already. */
  async told<Name extends EventName>(name: Name): Promise<EventOf<Name>> {
    for (;;) {
      const [event] = this.events(name)
      if (event !== undefined) return event
      await new Promise<void>((resolve, reject) => {
        this.#watchers.add(resolve)
        void this.ended.then((how) => reject(new Error(`The worker ended (${how}) before it was ${name}.`)))
      })
    }
  }

  /** What it has told so far. */
  events<Name extends EventName>(name: Name): EventOf<Name>[] {
    return this.#events.filter((event): event is EventOf<Name> => event.event === name)
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  /** `kill -9`; resolves when it is gone, with the moment before the signal was sent. */
  async kill(): Promise<number> {
    const at = Date.now()
    this.#child.kill('SIGKILL')
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.ended
    return at
  }

  #hear(message: WorkerEvent | WorkerAnswer): void {
    if ('event' in message) {
      this.#events.push(message)
      for (const watcher of this.#watchers) watcher()
      this.#watchers.clear()
      return
    }
    const order = this.#open.get(message.id)
    this.#open.delete(message.id)
    if ('error' in message) order?.reject(new WorkerError(message.error))
    else order?.resolve(message.value)
  }
}
