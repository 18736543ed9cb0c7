// The bugs on show in docs/museum.md, and what each of them is shown to.

/** Planted into the store, found by the contract suite. */
export const contractExhibits = [
  'expiry-on-the-caller’s-clock',
  'held-on-the-caller’s-clock',
  'fence-minted-after-the-grant',
  'fence-loses-digits',
  'fence-starts-over-after-purge',
  'check-then-act',
  'duplicate-key-granted-twice',
  'repeated-acquire-answers-the-old-grant',
  'spent-token-accepted',
  'refresh-shortens',
  'refresh-is-an-upsert',
  'refresh-revives-the-lapsed',
  'release-without-token',
  'mark-removed-on-completion',
  'mark-in-the-future',
  'claim-without-after',
  'edit-fires-the-past',
  'old-schedule-bumps-the-mark',
  'silently-deaf',
  'forty-days-overflow',
] as const

/** Planted into the core, found by its checks. */
export const coreExhibits = [
  'the deadline is counted from the answer',
  'the deadline is the ttl from now, whatever the store said',
  'an older answer moves the deadline back',
  'the token of an abandoned acquire is forgotten',
  'a key is in a batch as often as it is asked for',
  'nobody looks again once the subscription is confirmed',
  'timers are handed to Node as they are',
  'only a renewal tells of a loss',
  'the wall clock is not looked at',
] as const

/** Planted into store or core of simulated fleets: the promise that breaks, and in which bug. */
export const simulatorExhibits = [
  ['G1', 'grant-while-held'],
  ['G1', 'refresh-shortens'],
  ['G1', 'the deadline is counted from the answer'],
  ['G2', 'fence-loses-digits'],
  ['G2', 'fence-starts-over-after-purge'],
  ['G3', 'only a renewal tells of a loss'],
  ['G3', 'the signal is a stock one'],
  ['G4', 'expiry-on-the-caller’s-clock'],
  ['G4', 'refresh-without-token'],
  ['G5', 'mark-removed-on-completion'],
  ['G5', 'mark-in-the-future'],
  ['G6', 'mark-removed-on-completion'],
  ['G7', 'a store that is down is taken for a key that is held'],
  ['G7', 'busy is taken for held'],
  ['G8', 'release-without-token'],
  ['G9', 'what has ended is not forgotten'],
] as const

/** Planted into the SQL of the driver, found on a real server. */
export const postgresExhibits = [
  'a renewal commits asynchronously, as if a lost one only shortened the lease',
] as const
