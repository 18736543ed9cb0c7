import { InvalidOptionError } from '../../core/errors.ts'
import { resolveTask } from '../task-options.ts'
import type { TaskRun } from '../task-run.ts'
import { methodTarget, shownKey } from './method-target.ts'
import { placeOn, type ScheduledOptions } from './scheduled-methods.ts'
import { withoutStore } from './without-store.ts'

/**
 * Makes a method a task: when an instance of the class is given to `TaskScheduler.register`, or is a provider of a
 * Nest app that imports `LeaseholdModule`, the method runs once per slot for the whole fleet. It is called on the
 * instance, with the run.
 *
 * Works under TC39 decorators and under `experimentalDecorators`, above or below other decorators. A subclass has the
 * tasks of its base class; a method that overrides one keeps its schedule, unless it is decorated itself.
 *
 * @throws InvalidOptionError when the class is defined: an option that cannot be used, or no method of instances
 * @example
 * class Books {
 *   @Scheduled({ cron: '0 2 * * *', timeZone: 'Europe/Paris' })
 *   async close({ slot, signal }: TaskRun) { … }
 * }
 * tasks.register(new Books())
 */
export function Scheduled(options: ScheduledOptions): ScheduledDecorator {
  return (...args: readonly unknown[]): void => {
    const target = methodTarget('Scheduled', args)
    if (target.isStatic || target.isPrivate) {
      throw new InvalidOptionError(
        'target',
        `@Scheduled goes on a public method of instances; ${shownKey(target.key)} is ${target.isStatic ? 'static' : 'private'}.`,
      )
    }
    placeOn(target, checked(shownKey(target.key), options))
  }
}

/** Either kind of method decorator, for methods that a task can call. */
export interface ScheduledDecorator {
  <This, Method extends (this: This, run: TaskRun) => unknown>(
    method: Method,
    context: ClassMethodDecoratorContext<This, Method>,
  ): void
  <Method extends (run: TaskRun) => unknown>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void
}

/** The options as they are, once it is sure that a scheduler will take them. @throws InvalidOptionError */
function checked(method: string, options: ScheduledOptions): ScheduledOptions {
  try {
    const { name = 'any', ...task } = options ?? {}
    resolveTask(name, task, { service: withoutStore, timeZone: 'UTC', lease: {} })
    return { ...options }
  } catch (error) {
    if (!(error instanceof InvalidOptionError)) throw error
    throw new InvalidOptionError(error.option, `@Scheduled on ${method}: ${error.message}`, { cause: error })
  }
}
