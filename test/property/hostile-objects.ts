import fc from 'fast-check'
import { hostileValue } from '../core/hostile-values.ts'

/**
 * How to make something hostile. It is made when it is used: fast-check looks at the values that it generates, which
 * some of them do not bear.
 */
export interface Recipe {
  /** Shown when an example fails. */
  readonly what: unknown
  readonly make: () => unknown
}

const thenName = ['th', 'en'].join('')

const explode = (): never => {
  throw new RangeError('Somebody looked at a hostile object.')
}

/** Answers every question with an exception. */
function thornyProxy(target: object): unknown {
  const traps = Reflect.ownKeys(Reflect).filter((trap) => typeof trap === 'string')
  return new Proxy(target, Object.fromEntries(traps.map((trap) => [trap, explode])))
}

function revokedProxy(target: object): unknown {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

/** Objects that do something when they are looked at, and values that only resemble what is wanted. */
const objects: Readonly<Record<string, () => unknown>> = {
  'thorny proxy of an object': () => thornyProxy({}),
  'thorny proxy of a function': () => thornyProxy(() => {}),
  'thorny proxy of an array': () => thornyProxy([]),
  'revoked proxy of an object': () => revokedProxy({}),
  'revoked proxy of a function': () => revokedProxy(() => {}),
  'revoked proxy of an array': () => revokedProxy([]),
  'proxy that has functions only': () => new Proxy({}, { get: () => explode }),
  'proxy that has names only': () => new Proxy({}, { get: (_, name) => name }),
  'proxy that has everything': () => new Proxy({}, { has: () => true, get: () => 1, ownKeys: () => [] }),
  'getter of then that throws': () => Object.defineProperty({}, thenName, { get: explode }),
  'getter of message that throws': () => Object.defineProperty(new Error('x'), 'message', { get: explode }),
  'thenable that never settles': () => ({ [thenName]: () => {} }),
  'text that throws': () => ({
    toString: explode,
    valueOf: explode,
    toJSON: explode,
    [Symbol.toPrimitive]: explode,
  }),
  'signal by its prototype only': () => Object.create(AbortSignal.prototype) as unknown,
  'error by its prototype only': () => Object.create(Error.prototype) as unknown,
  'proxy of a signal': () => new Proxy(new AbortController().signal, {}),
  'something like a signal': () => ({
    aborted: false,
    addEventListener: () => {},
    removeEventListener: () => {},
  }),
  'error with a strange cause': () => new Error('x', { cause: explode }),
  'a megabyte': () => 'x'.repeat(1_000_000),
  bytes: () => new Uint8Array(8),
  globalThis: () => globalThis,
  class: () =>
    class {
      readonly field = 5
    },
  'async function': () => async () => {},
  generator: () => function* () {},
  'frozen options': () => Object.freeze({ ttl: '5s' }),
  undefined: () => undefined,
}

export const hostileObject: fc.Arbitrary<Recipe> = fc.oneof(
  fc.constantFrom(...Object.keys(objects)).map((what) => ({ what, make: objects[what] as () => unknown })),
  hostileValue.map((value) => ({ what: value, make: () => value })),
)

/** Options in which something is not as it should be: another value, another name, or no options at all. */
export function hostileOptions(good: object): fc.Arbitrary<Recipe> {
  const names = fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...Object.keys(good)) }, fc.string())
  return fc.oneof(
    { weight: 1, arbitrary: hostileObject },
    {
      weight: 5,
      arbitrary: fc
        .tuple(fc.array(fc.tuple(names, hostileObject), { minLength: 1, maxLength: 2 }), fc.boolean())
        .map(([bad, isComplete]) => ({
          what: { isComplete, bad: bad.map(([name, { what }]) => [name, what]) },
          make: () => ({
            ...(isComplete ? good : {}),
            ...Object.fromEntries(bad.map(([name, { make }]) => [name, make()])),
          }),
        })),
    },
    {
      weight: 1,
      arbitrary: names.map((name) => ({
        what: `getter of ${name} that throws`,
        make: () => Object.defineProperty({ ...good }, name, { get: explode, enumerable: true }),
      })),
    },
  )
}

/** Arguments of which one is hostile, or all are. */
export function hostileArguments(...good: readonly unknown[]): fc.Arbitrary<readonly Recipe[]> {
  const each = good.map((value) => (isPlain(value) ? hostileOptions(value) : hostileObject))
  const fine = good.map((value): Recipe => ({ what: 'as it should be', make: () => value }))
  const one = each.map((bad, place) => bad.map((recipe) => fine.with(place, recipe)))
  return fc.oneof({ weight: 3, arbitrary: fc.oneof(...one) }, { weight: 1, arbitrary: fc.tuple(...each) })
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}
