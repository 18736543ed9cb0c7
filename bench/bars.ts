import type { Result } from './results.ts'
import type { Metric } from './scenario.ts'

/** What a result of ours has to reach. */
interface Bar {
  readonly scenario: string
  /** Default `'leasehold'`. */
  readonly subject?: string
  readonly metric: Metric
  readonly figure: 'median' | 'ratioToBestPeer' | 'ratioToRaw'
  readonly atLeast?: number
  readonly atMost?: number
}

const bars: readonly Bar[] = [
  { scenario: 'redis.cycle.1', metric: 'opsPerSecond', figure: 'ratioToRaw', atLeast: 0.9 },
  { scenario: 'redis.cycle.1', metric: 'opsPerSecond', figure: 'ratioToBestPeer', atLeast: 1 },
  { scenario: 'redis.cycle.100', metric: 'opsPerSecond', figure: 'ratioToBestPeer', atLeast: 4 },
  { scenario: 'redis.cycle.100', metric: 'opsPerSecond', figure: 'ratioToRaw', atLeast: 2.5 },
  { scenario: 'redis.cycle.1000', metric: 'opsPerSecond', figure: 'ratioToBestPeer', atLeast: 5 },
  { scenario: 'postgres.cycle.1', metric: 'opsPerSecond', figure: 'ratioToBestPeer', atLeast: 1.2 },
  { scenario: 'postgres.cycle.100', metric: 'opsPerSecond', figure: 'ratioToBestPeer', atLeast: 10 },
  { scenario: 'postgres.cycle.100', metric: 'opsPerSecond', figure: 'ratioToRaw', atLeast: 2.5 },
  { scenario: 'sqlite.cycle.1', metric: 'opsPerSecond', figure: 'ratioToBestPeer', atLeast: 6 },
  { scenario: 'sqlite.cycle.4procs', metric: 'opsPerSecond', figure: 'ratioToBestPeer', atLeast: 3 },
  { scenario: 'redis.handover', metric: 'gapMs', figure: 'median', atMost: 1 },
  { scenario: 'postgres.handover', metric: 'gapMs', figure: 'median', atMost: 3 },
  ...['redis', 'postgres'].flatMap((store): Bar[] => [
    { scenario: `${store}.handover`, metric: 'commandsPerHandover', figure: 'median', atMost: 4 },
    { scenario: `${store}.idlewait`, metric: 'commandsPerSecond', figure: 'median', atMost: 1 },
    { scenario: `${store}.heartbeat`, metric: 'commandsPerTenSeconds', figure: 'median', atMost: 30 },
    { scenario: `${store}.heartbeat`, metric: 'cpuPercent', figure: 'median', atMost: 3 },
    { scenario: `${store}.heartbeat`, metric: 'eventLoopDelayMsP99', figure: 'median', atMost: 20 },
    { scenario: `${store}.heartbeat`, metric: 'leasesLost', figure: 'median', atMost: 0 },
  ]),
  ...['leasehold', 'leasehold on PostgreSQL'].flatMap((subject): Bar[] => [
    { scenario: 'scheduler.storm', subject, metric: 'latenessMsP99', figure: 'median', atMost: 500 },
    { scenario: 'scheduler.storm', subject, metric: 'commandsPerSlotAndNode', figure: 'median', atMost: 1.5 },
  ]),
  { scenario: 'import', subject: 'leasehold core', metric: 'importMs', figure: 'median', atMost: 15 },
  { scenario: 'import', subject: 'leasehold core', metric: 'importMiB', figure: 'median', atMost: 5 },
  { scenario: 'memory.perlease', metric: 'heapBytesPerLease', figure: 'median', atMost: 1_536 },
]

export interface Verdict {
  /** For people, such as `≥ 4 × the best peer`. */
  readonly bar: string
  readonly isMet: boolean
}

/** What is asked of this result; nothing of most. */
export function judge(result: Result): Verdict[] {
  return bars
    .filter(
      ({ scenario, subject = 'leasehold', metric }) =>
        scenario === result.scenario && subject === result.subject && metric === result.metric,
    )
    .map((bar) => {
      const value = result[bar.figure]
      const { atLeast = -Infinity, atMost = Infinity } = bar
      return { bar: describe(bar), isMet: value !== null && value >= atLeast && value <= atMost }
    })
}

function describe({ figure, atLeast, atMost }: Bar): string {
  const limit = atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`
  if (figure === 'median') return limit
  return `${limit} × ${figure === 'ratioToRaw' ? 'raw' : 'the best peer'}`
}
