import fc from 'fast-check'

/** Throws when it is converted to text. */
const thorny = Object.assign(() => {}, {
  toString(): string {
    throw new Error('Somebody converted a hostile value.')
  },
})

const circular: Record<string, unknown> = {}
circular['itself'] = circular

/** What a program without types may pass by mistake, and some things that nobody passes by mistake. */
export const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    NaN,
    -0,
    -1,
    Infinity,
    -Infinity,
    2 ** 53,
    10n,
    Symbol('hostile'),
    '',
    ' ',
    '5',
    '5 s',
    '-5s',
    'NaN',
    'Infinity',
    '\0',
    '\ud800',
    '__proto__',
    () => '5s',
    thorny,
    Object.create(null),
    circular,
    [],
    ['5s'],
    new Map(),
    new Date(NaN),
    Promise.resolve('5s'),
    /5s/,
    { toString: () => '5s', valueOf: () => 5_000 },
  ),
  fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, withSet: true }),
)
