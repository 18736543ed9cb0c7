import type { Check } from './core-under-trial.ts'

/** The modules of the core into which a bug can be planted. */
export interface Modules {
  acquisition: typeof import('../../../src/core/acquisition.ts')
  ambient: typeof import('../../../src/core/ambient.ts')
  batcher: typeof import('../../../src/core/batcher.ts')
  clock: typeof import('../../../src/core/clock.ts')
  deadline: typeof import('../../../src/core/deadline.ts')
  'fence-ledger': typeof import('../../../src/core/fence-ledger.ts')
  'give-back': typeof import('../../../src/core/give-back.ts')
  heartbeat: typeof import('../../../src/core/heartbeat.ts')
  hold: typeof import('../../../src/core/hold.ts')
  'lease-signal': typeof import('../../../src/core/lease-signal.ts')
  options: typeof import('../../../src/core/options.ts')
  'stored-key': typeof import('../../../src/core/stored-key.ts')
  'waiting-room': typeof import('../../../src/core/waiting-room.ts')
  'wake-ups': typeof import('../../../src/core/wake-ups.ts')
}

export interface Bug {
  /** What is done wrong. */
  readonly name: string
  readonly module: keyof Modules
  /** What the module exports instead. */
  readonly plant: (original: never) => object
  /** The checks that have to turn red. */
  readonly caughtBy: readonly Check[]
}

/** A bug whose module is known by name, so that what it plants has the right shape. */
export function bug<Name extends keyof Modules>(
  name: string,
  module: Name,
  caughtBy: readonly Check[],
  plant: (original: Modules[Name]) => Partial<Modules[Name]>,
): Bug {
  return { name, module, plant, caughtBy }
}

export type Batchers = Modules['batcher']['Batcher']

/** A batcher whose results are bent by the caller. */
export function bentBatcher(
  Batcher: Batchers,
  bend: (
    sent: Awaited<ReturnType<InstanceType<Batchers>['submit']>>,
    clock: { monotonic(): number; wall(): number },
  ) => unknown,
): Batchers {
  return class extends Batcher<unknown, unknown> {
    readonly #clock: { monotonic(): number; wall(): number }

    constructor(...args: ConstructorParameters<typeof Batcher<unknown, unknown>>) {
      super(...args)
      this.#clock = args[0].clock
    }

    override async submit(...args: Parameters<InstanceType<Batchers>['submit']>): Promise<never> {
      return bend(await super.submit(...args), this.#clock) as never
    }
  } as unknown as Batchers
}

/** The outcome of an answer, if it has one. */
export const outcome = (answer: unknown): unknown => (answer as { outcome?: unknown }).outcome
