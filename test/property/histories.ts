import fc, { type AsyncCommand } from 'fast-check'

/** How many histories are played, and of how many moves. */
export interface Extent {
  readonly histories: number
  readonly moves: number
  /** Whether a history that fails is cut down. Default true. */
  readonly isCutDown?: boolean
}

/** A model and the real thing, as they are before the first move. */
export interface Beginning<Model extends object, World> {
  readonly model: Model
  readonly world: World
  /** What has to be so after each move, whatever it was. */
  readonly afterEach?: () => Promise<void> | void
  /** What has to be so at the end of a history. */
  readonly afterAll?: () => Promise<void>
  readonly end: () => Promise<void>
}

/** They take some seconds, on a machine that has other things to do a minute. */
const longestMs = 100_000

/**
 * Plays random histories of moves on a model and on the real thing. A history that fails is cut down to the moves that
 * it takes, and printed with what replays it.
 *
 * Other histories: `MODEL_SEED=7`, more: `MODEL_RUNS=500`. The one that failed: `MODEL_SEED`, `MODEL_PATH` and
 * `MODEL_REPLAY`, as the failure says (`seed`, `path`, `replayPath`).
 */
export async function playHistories<Model extends object, World>(
  moves: readonly fc.Arbitrary<AsyncCommand<Model, World>>[],
  { histories, moves: maxCommands, isCutDown = true }: Extent,
  begin: () => Promise<Beginning<Model, World>>,
): Promise<void> {
  const { MODEL_SEED, MODEL_PATH, MODEL_REPLAY, MODEL_RUNS } = process.env
  const replayPath = MODEL_REPLAY === undefined ? {} : { replayPath: MODEL_REPLAY }
  const commands = fc.commands([...moves], { maxCommands, size: 'max', ...replayPath })
  const property = fc.asyncProperty(commands, async (history) => {
    const { model, world, afterEach = () => {}, afterAll, end } = await begin()
    const checked = [...history].map((move) => withCheck(move, afterEach))
    try {
      await fc.asyncModelRun(() => ({ model, real: world }), checked)
      await afterAll?.()
    } finally {
      await end()
    }
  })
  await fc.assert(property, {
    seed: Number(MODEL_SEED ?? 1),
    numRuns: Number(MODEL_RUNS ?? histories),
    endOnFailure: !isCutDown,
    // A long search for the shortest history ends with the best so far.
    interruptAfterTimeLimit: longestMs,
    markInterruptAsFailure: true,
    ...(MODEL_PATH === undefined ? {} : { path: MODEL_PATH }),
  })
}

function withCheck<Model extends object, World>(
  move: AsyncCommand<Model, World>,
  afterEach: () => Promise<void> | void,
): AsyncCommand<Model, World> {
  return {
    check: (model) => move.check(model),
    run: async (model, world) => {
      await move.run(model, world)
      await afterEach()
    },
    toString: () => move.toString(),
  }
}
