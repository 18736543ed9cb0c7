// Starts test/programs/task-pod.ts as processes, and ends them with the test.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished, vi } from 'vitest'
import type { StoreAddress } from '../programs/open-locks.ts'
import type { TaskPodEvent, TaskPodSettings } from '../programs/task-pod.ts'
import { startProgram } from '../support/programs.ts'
import { postgresUrl, redisUrl } from '../support/stores.ts'

/** The stores that processes can share, each through one client. */
export const addresses: Readonly<Record<'sqlite' | 'postgres' | 'redis', () => Promise<StoreAddress>>> = {
  sqlite: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-pods-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    return { client: 'sqlite', url: join(folder, 'tasks.db') }
  },
  postgres: async () => ({ client: 'pg', url: await postgresUrl() }),
  redis: async () => ({ client: 'ioredis', url: await redisUrl() }),
}

type EventName = TaskPodEvent['event']

export class TaskPod {
  readonly events: TaskPodEvent[] = []
  /** Resolves with the exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>
  readonly #child: ChildProcess

  static async start(settings: TaskPodSettings): Promise<TaskPod> {
    const pod = new TaskPod(startProgram('task-pod', [JSON.stringify(settings)]))
    await pod.told('ready')
    return pod
  }

  constructor(child: ChildProcess) {
    this.#child = child
    // After its last message, which may come later than its exit.
    this.ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string)
    child.on('message', (event) => this.events.push(event as TaskPodEvent))
    onTestFinished(async () => {
      child.kill('SIGKILL')
      await this.ended
    })
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** The slots of which a task has told this. */
  slots(event: EventName, task: string): number[] {
    return this.events.flatMap((one) =>
      one.event === event && 'task' in one && one.task === task ? [one.slot] : [],
    )
  }

  /** Resolves when it has told so many of these. */
  async told(event: EventName, task?: string, count = 1): Promise<void> {
    await vi.waitUntil(
      () =>
        this.events.filter(
          (one) => one.event === event && (task === undefined || ('task' in one && one.task === task)),
        ).length >= count,
      { timeout: 30_000, interval: 20 },
    )
  }
}
