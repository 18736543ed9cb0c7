import { InvalidOptionError } from '../../core/errors.ts'

/** A function as decorators see it, whatever it takes. */
export type AnyMethod = (this: unknown, ...args: readonly unknown[]) => unknown

/** The method that a decorator was written on, seen alike under both kinds of decorators. */
export interface MethodTarget {
  readonly key: string | symbol
  readonly method: AnyMethod
  readonly isStatic: boolean
  readonly isPrivate: boolean
  /** `experimentalDecorators`: what holds the method, a prototype or a class. Null under TC39 decorators. */
  readonly holder: object | null
  /** TC39 decorators: runs with each new instance. Null under `experimentalDecorators`. */
  readonly onInstance: ((initialize: (this: object) => void) => void) | null
}

/**
 * Reads the arguments of a decorator: `(method, context)` under TC39 decorators, `(holder, key, descriptor)` under
 * `experimentalDecorators`.
 *
 * @param name of the decorator, for the error
 * @throws InvalidOptionError for anything but a method
 */
export function methodTarget(name: string, args: readonly unknown[]): MethodTarget {
  const [first, second, third] = args
  if (isContext(second)) {
    if (second.kind !== 'method' || typeof first !== 'function') throw notAMethod(name, second.kind)
    return {
      key: second.name,
      method: first as AnyMethod,
      isStatic: second.static,
      isPrivate: second.private,
      holder: null,
      onInstance: (initialize) => second.addInitializer(initialize),
    }
  }
  const isKey = typeof second === 'string' || typeof second === 'symbol'
  if (!isKey) throw notAMethod(name, typeof first === 'function' ? 'class' : 'value')
  if (typeof third === 'number') throw notAMethod(name, 'parameter')
  const method = (third as PropertyDescriptor | undefined)?.value as unknown
  if (typeof method !== 'function') throw notAMethod(name, third === undefined ? 'field' : 'accessor')
  return {
    key: second,
    method: method as AnyMethod,
    isStatic: typeof first === 'function',
    isPrivate: false,
    holder: first as object,
    onInstance: null,
  }
}

/** A method's name for messages. */
export function shownKey(key: string | symbol): string {
  return typeof key === 'symbol' ? `[${String(key)}]` : key
}

interface MethodContext {
  readonly kind: string
  readonly name: string | symbol
  readonly static: boolean
  readonly private: boolean
  addInitializer(initializer: (this: object) => void): void
}

function isContext(value: unknown): value is MethodContext {
  return typeof value === 'object' && value !== null && 'kind' in value
}

function notAMethod(name: string, what: string): InvalidOptionError {
  return new InvalidOptionError('target', `@${name} goes on a method; it was put on a ${what}.`)
}
