import type { Pace } from './scenario.ts'

/** What is measured in turns with others. */
export interface Turn {
  readonly name: string
  /** Works for that long and answers what came of it, in the metric's unit. */
  readonly run: (ms: number) => Promise<number>
}

/**
 * Each in every round, and another one first in each: what the machine does meanwhile meets all of them alike.
 * @param before what is cleared up before a turn, outside of its time
 * @returns the values by name, one per round
 */
export async function inTurns(
  turns: readonly Turn[],
  pace: Pace,
  before: () => Promise<unknown> = async () => {},
): Promise<ReadonlyMap<string, readonly number[]>> {
  for (const turn of turns) await turn.run(pace.warmUpMs)
  const values = new Map<string, number[]>(turns.map(({ name }) => [name, []]))
  for (let round = 0; round < pace.rounds; round++) {
    for (const index of turns.keys()) {
      const turn = turns[(index + round) % turns.length] as Turn
      await before()
      values.get(turn.name)?.push(await turn.run(pace.roundMs))
    }
  }
  return values
}
