import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { lateIndex, lateMs, type PodMessage, type PodOrders } from './messages.ts'

export interface FleetOptions {
  readonly url: string
  readonly namespace: string
  readonly journal: string
  readonly onMessage: (pod: Pod, message: PodMessage) => void
}

/** One pod as its parent sees it. */
export interface Pod {
  readonly name: string
  /** Which of the three places it fills; a replacement takes its predecessor's. */
  readonly place: number
  readonly process: ChildProcess
  /** Resolves when it has ended, with how. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
}

/** Starts pods, and sees to it that none outlives the demo. */
export class Fleet {
  readonly #options: FleetOptions
  readonly #pods = new Set<Pod>()
  #started = 0

  constructor(options: FleetOptions) {
    this.#options = options
    process.once('exit', () => {
      for (const pod of this.#pods) pod.process.kill('SIGKILL')
    })
  }

  get pods(): readonly Pod[] {
    return [...this.#pods]
  }

  /** Starts a pod and resolves when its scheduler runs. */
  async start(place: number): Promise<Pod> {
    const { url, namespace, journal, onMessage } = this.#options
    const name = `pod-${++this.#started}`
    const orders: PodOrders = { url, namespace, pod: name, journal, lateMs: place === lateIndex ? lateMs : 0 }
    const child = fork(fileURLToPath(new URL('./pod.js', import.meta.url)), [JSON.stringify(orders)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    const ended = new Promise<Awaited<Pod['ended']>>((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }))
    })
    const pod: Pod = { name, place, process: child, ended }
    this.#pods.add(pod)
    void ended.then(() => this.#pods.delete(pod))
    await new Promise<void>((resolve, reject) => {
      child.on('message', (message) => {
        const told = message as PodMessage
        if (told.kind === 'ready') resolve()
        else if (told.kind === 'failed') reject(new Error(told.message))
        else onMessage(pod, told)
      })
      void ended.then(({ code, signal }) =>
        reject(new Error(`${name} ended at its start (${signal ?? code}).`)),
      )
    })
    return pod
  }

  /** Asks all to drain and waits until they have ended. */
  async stop(): Promise<void> {
    for (const pod of this.pods) pod.process.kill('SIGTERM')
    await Promise.all(this.pods.map((pod) => pod.ended))
  }
}
