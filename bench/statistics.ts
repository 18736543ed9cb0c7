/** What the rounds of one measurement came to. */
export interface Summary {
  readonly median: number
  readonly min: number
  readonly max: number
  readonly rounds: number
}

/** @throws RangeError without a value */
export function summarize(values: readonly number[]): Summary {
  return {
    median: quantile(values, 0.5),
    min: quantile(values, 0),
    max: quantile(values, 1),
    rounds: values.length,
  }
}

/**
 * The value below which a share of the others lies, interpolated between neighbours.
 * @param share 0 to 1
 * @throws RangeError without a value
 */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const position = (sorted.length - 1) * share
  const below = sorted[Math.floor(position)]
  const above = sorted[Math.ceil(position)]
  if (below === undefined || above === undefined)
    throw new RangeError('There is nothing to take a quantile of')
  return below + (above - below) * (position - Math.floor(position))
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
