import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Request, Reply } from './protocol.ts'

/** A process of its own that does what a scenario asks of it. */
export interface Worker {
  /** Asks for one of the verbs of its role. Rejects with what that threw. */
  call<Result>(verb: string, ...args: readonly unknown[]): Promise<Result>
  close(): Promise<void>
}

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/**
 * Starts a worker and resolves when it is ready.
 * @param role a file beside this one: see `main.ts`
 * @param setup what its role is given at the start; has to be JSON
 */
export async function startWorker(role: string, setup: object, nodeOptions: string[] = []): Promise<Worker> {
  const program = fileURLToPath(new URL('main.js', import.meta.url))
  const child = fork(program, [role, JSON.stringify(setup)], { execArgv: nodeOptions })
  running.add(child)
  child.once('exit', () => running.delete(child))
  const pending = new Map<number, (reply: Reply) => void>()
  let calls = 0
  child.on('message', (reply: Reply) => pending.get(reply.id)?.(reply))
  child.once('exit', (code) => {
    for (const [id, settle] of pending) settle({ id, error: `The ${role} worker ended with ${code}` })
  })
  const call = <Result>(verb: string, ...args: readonly unknown[]): Promise<Result> =>
    new Promise((resolve, reject) => {
      const id = calls++
      pending.set(id, (reply) => {
        pending.delete(id)
        if (reply.error === undefined) resolve(reply.result as Result)
        else reject(new Error(reply.error))
      })
      send(child, { id, verb, args })
    })
  await call('ready')
  return {
    call,
    async close() {
      if (child.exitCode !== null) return
      const gone = once(child, 'exit')
      await call('close').catch(() => {})
      child.disconnect()
      await gone
    },
  }
}

function send(child: ChildProcess, request: Request): void {
  child.send(request, (error) => {
    if (error !== null) child.emit('message', { id: request.id, error: error.message } satisfies Reply)
  })
}
