import type { ModulesContainer } from '@nestjs/core'
import {
  type LockService,
  scheduledMethods,
  type TaskScheduler,
  UnguardableError,
  useLocks,
} from '../index.ts'

type Wrapper =
  ReturnType<ModulesContainer['get']> extends (infer Module) | undefined
    ? Module extends { providers: Map<unknown, infer Each> }
      ? Each
      : never
    : never

/** Tells the classes of an application, before they have instances, where their `@Exclusive` methods lock. */
export function useLocksInClasses(modules: ModulesContainer, locks: LockService): void {
  for (const { metatype } of wrappersOf(modules)) {
    const prototype = prototypeOf(metatype)
    if (prototype !== null) useLocks(prototype, locks)
  }
}

/** The same for each instance: what factories made has no class that is known, and two applications may share a class. */
export function useLocksInInstances(modules: ModulesContainer, locks: LockService): void {
  for (const instance of instancesOf(modules)) useLocks(instance, locks)
}

/**
 * Registers the `@Scheduled` methods of all providers and controllers.
 *
 * @returns the names of the tasks
 * @throws UnguardableError for a provider that has an instance per request or per consumer; DuplicateTaskError
 */
export function registerTasks(modules: ModulesContainer, tasks: TaskScheduler): string[] {
  for (const wrapper of wrappersOf(modules)) {
    const prototype = prototypeOf(wrapper.metatype)
    if (isSingle(wrapper) || prototype === null) continue
    const [task] = scheduledMethods(prototype)
    if (task === undefined) continue
    throw new UnguardableError(
      `${wrapper.name} has the task ${JSON.stringify(task.name)}, but no instance that it could run on: it is ${wrapper.isTransient ? 'transient' : 'request-scoped, or depends on what is'}. Move @Scheduled into a provider of the default scope, and resolve the other one there with ModuleRef.resolve().`,
    )
  }
  return [...instancesOf(modules)]
    .filter((instance) => scheduledMethods(instance).length > 0)
    .flatMap((instance) => tasks.register(instance))
}

/** Each once, in the order of the modules. */
function instancesOf(modules: ModulesContainer): Set<object> {
  const instances = wrappersOf(modules)
    .filter(isSingle)
    .map((wrapper) => wrapper.instance)
    .filter((instance) => typeof instance === 'object' && instance !== null)
  return new Set(instances)
}

function wrappersOf(modules: ModulesContainer): Wrapper[] {
  return [...modules.values()].flatMap<Wrapper>(({ providers, controllers }) => [
    ...providers.values(),
    ...controllers.values(),
  ])
}

function isSingle(wrapper: Wrapper): boolean {
  return wrapper.isDependencyTreeStatic() && !wrapper.isTransient
}

function prototypeOf(metatype: unknown): object | null {
  if (typeof metatype !== 'function') return null
  const prototype = metatype.prototype as unknown
  return typeof prototype === 'object' ? prototype : null
}
