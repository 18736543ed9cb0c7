import { InvalidOptionError } from '../../core/errors.ts'
import type { TaskOptions } from '../task-options.ts'
import type { TaskHandler } from '../task-run.ts'
import { type MethodTarget, shownKey } from './method-target.ts'

/** The options of a task, and its name. */
export type ScheduledOptions = TaskOptions & {
  /**
   * The task's name, shared by the whole fleet. Default: class and method, `'Books.close'`; give one where a minifier
   * renames classes, and where one class has several instances.
   */
  readonly name?: string | undefined
}

/** A decorated method of an instance. */
export interface ScheduledMethod {
  readonly key: string | symbol
  /** The task's name. */
  readonly name: string
  readonly options: TaskOptions
  /** Calls the method on the instance. */
  readonly handler: TaskHandler
}

type Placed = Map<string | symbol, ScheduledOptions>

/**
 * Where decorators were put: on a prototype (`experimentalDecorators`) or on an instance (TC39). By place and not by
 * function, so that it does not matter which decorators wrap the method besides.
 */
const placed = new WeakMap<object, Placed>()
/** Decorated under TC39: such a decorator never gets to see the class. */
const seen = new WeakSet<object>()

/** @throws InvalidOptionError if the method has a schedule already */
export function placeOn(target: MethodTarget, options: ScheduledOptions): void {
  const { key, method, holder, onInstance } = target
  if (holder === null ? seen.has(method) : placed.get(holder)?.has(key) === true) {
    throw new InvalidOptionError(
      'target',
      `@Scheduled was put on ${shownKey(key)} twice: a method has one schedule. Let two methods call a third.`,
    )
  }
  seen.add(method)
  if (holder !== null) note(holder, key, options)
  onInstance?.(function noteInstance(this: object) {
    note(this, key, options)
  })
}

/**
 * The methods of an instance that are decorated with `@Scheduled`: those of its base class first, each class in the
 * order of declaration.
 *
 * @throws InvalidOptionError if a task has no usable name
 */
export function scheduledMethods(instance: object): ScheduledMethod[] {
  const all: Placed = new Map()
  for (const holder of chainOf(instance)) {
    for (const [key, options] of placed.get(holder) ?? []) all.set(key, options)
  }
  return [...all].map(([key, { name, ...options }]) => ({
    key,
    name: name ?? defaultName(instance, key),
    options: options as TaskOptions,
    handler: bound(instance, key),
  }))
}

/** The same, of an instance that must have some. @throws InvalidOptionError */
export function scheduledMethodsOf(instance: object): ScheduledMethod[] {
  if (typeof instance !== 'object' || instance === null) {
    throw new InvalidOptionError('instance', 'register takes an instance of a class with @Scheduled methods.')
  }
  const methods = scheduledMethods(instance)
  if (methods.length > 0) return methods
  throw new InvalidOptionError(
    'instance',
    `No method of this ${instance.constructor?.name ?? 'object'} is decorated with @Scheduled, or it was not made by its constructor.`,
  )
}

function note(holder: object, key: string | symbol, options: ScheduledOptions): void {
  const methods = placed.get(holder) ?? new Map()
  methods.set(key, options)
  placed.set(holder, methods)
}

/** The base class first, the instance last. */
function chainOf(instance: object): object[] {
  const chain: object[] = []
  for (let each: object | null = instance; each !== null; each = Object.getPrototypeOf(each) as object | null)
    chain.unshift(each)
  return chain
}

/** Whatever the instance has under that name when the task runs. @throws InvalidOptionError if it is no function */
function bound(instance: object, key: string | symbol): TaskHandler {
  const methods = instance as Record<string | symbol, TaskHandler | undefined>
  if (typeof methods[key] !== 'function') {
    throw new InvalidOptionError(
      'instance',
      `${shownKey(key)} is decorated with @Scheduled, but is no method of this instance: something replaced it.`,
    )
  }
  return (run) => methods[key]?.(run)
}

function defaultName(instance: object, key: string | symbol): string {
  const name = (instance.constructor as { name?: unknown } | undefined)?.name
  if (typeof key === 'string' && typeof name === 'string' && name !== '') return `${name}.${key}`
  throw new InvalidOptionError(
    'name',
    `The task of ${shownKey(key)} has no name, since ${typeof key === 'symbol' ? 'it is no text' : 'its class has none'}: give one, @Scheduled({ name: '…', … }).`,
  )
}
