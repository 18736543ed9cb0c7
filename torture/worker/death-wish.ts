import type { Driver, LockDriver, TaskDriver } from 'leasehold/driver'
import { ownPid } from './disguise.ts'
import type { DeathPoint } from './messages.ts'

/** Lets a process kill itself, as SIGKILL does, at a point that no signal from outside would hit. */
export class DeathWish {
  #point: DeathPoint | null = null

  /** Next time it gets there. */
  at(point: DeathPoint): void {
    this.#point = point
  }

  around(driver: Driver): Driver {
    return {
      ...driver,
      open: (namespace) => {
        const session = driver.open(namespace)
        return {
          locks: this.#locks(session.locks),
          tasks: this.#tasks(session.tasks),
          listen: session.listen?.bind(session),
          close: () => session.close(),
        }
      },
    }
  }

  #locks(locks: LockDriver): LockDriver {
    return {
      ...methodsOf(locks),
      acquire: async (requests, call) => {
        const answers = await locks.acquire(requests, call)
        if (answers.some(({ outcome }) => outcome === 'granted')) this.#reach('after-grant')
        return answers
      },
      refresh: (requests, call) => {
        const answers = locks.refresh(requests, call)
        if (this.#point === 'mid-renewal') setImmediate(() => this.#reach('mid-renewal'))
        return answers
      },
    }
  }

  #tasks(tasks: TaskDriver): TaskDriver {
    return {
      ...methodsOf(tasks),
      claim: async (requests, call) => {
        const answers = await tasks.claim(requests, call)
        if (answers.some(({ outcome }) => outcome === 'granted')) this.#reach('after-claim')
        return answers
      },
      complete: async (requests, call) => {
        const answers = await tasks.complete(requests, call)
        this.#reach('after-completion')
        return answers
      },
    }
  }

  #reach(point: DeathPoint): void {
    if (this.#point === point) process.kill(ownPid, 'SIGKILL')
  }
}

/** The verbs of a driver's object, which may be of a class, as functions of a plain one. */
export function methodsOf<Verbs extends object>(verbs: Verbs): Verbs {
  const prototype = Object.getPrototypeOf(verbs) as object
  const names = [...Object.keys(verbs), ...Object.getOwnPropertyNames(prototype)]
  const entries = names.flatMap((name) => {
    const value = (verbs as Record<string, unknown>)[name]
    return typeof value === 'function' && name !== 'constructor' && !(name in Object.prototype)
      ? [[name, value.bind(verbs) as unknown]]
      : []
  })
  return Object.fromEntries(entries) as Verbs
}
