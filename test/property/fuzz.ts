import fc from 'fast-check'

export interface FuzzOptions {
  /** How many examples, unless `FUZZ_RUNS` says otherwise. */
  readonly runs: number
  /** How long one example may take. Longer counts as a hang. Default 5 s. */
  readonly withinMs?: number
}

/**
 * Tries a property with random examples, the same ones each time. What fails is shrunk, and its seed and path are in the
 * message: `FUZZ_SEED=<seed> FUZZ_PATH=<path> npx vitest run <file> -t <test>` tries that example first again. Other
 * examples: `FUZZ_SEED=random`, more: `FUZZ_RUNS=5000`.
 */
export async function fuzz<Example>(
  examples: fc.Arbitrary<Example>,
  { runs, withinMs = 5_000 }: FuzzOptions,
  property: (example: Example) => Promise<void>,
): Promise<void> {
  const { FUZZ_SEED, FUZZ_PATH, FUZZ_RUNS } = process.env
  const unhandled: unknown[] = []
  const note = (reason: unknown): void => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  try {
    await fc.assert(
      fc.asyncProperty(examples, async (example) => {
        await within(withinMs, property(example))
        if (unhandled.length > 0) throw new Error('A rejection was left to nobody.', { cause: unhandled[0] })
      }),
      {
        numRuns: FUZZ_RUNS === undefined ? runs : Number(FUZZ_RUNS),
        // The same examples each time; FUZZ_SEED=random tries others.
        ...(FUZZ_SEED === 'random' ? {} : { seed: Number(FUZZ_SEED ?? 1) }),
        ...(FUZZ_PATH === undefined ? {} : { path: FUZZ_PATH }),
      },
    )
    // Node tells of a rejection that nobody handles at the end of the turn.
    await new Promise((resolve) => setImmediate(resolve))
    if (unhandled.length > 0) throw new Error('A rejection was left to nobody.', { cause: unhandled[0] })
  } finally {
    process.off('unhandledRejection', note)
  }
}

async function within<Value>(milliseconds: number, promise: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`It hangs: no end after ${milliseconds} ms.`)), milliseconds)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
