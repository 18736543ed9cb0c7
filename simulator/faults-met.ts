import type { Entry } from './history.ts'
import type { Plan } from './plan.ts'

const lateWakeMs = 100
/** A loss so soon after a process went on was found out by that. */
const afterStandstillMs = 1_100

type Met = (plan: Plan, history: readonly Entry[]) => boolean

const happened =
  (matches: (entry: Entry) => boolean): Met =>
  (_plan, history) =>
    history.some(matches)

const fault = (pattern: RegExp): Met =>
  happened((entry) => entry.kind === 'call' && entry.fault !== null && pattern.test(entry.fault))

const kind = (...kinds: readonly Entry['kind'][]): Met => happened((entry) => kinds.includes(entry.kind))

/** What a run can meet, told from what happened and not from what was planned. */
const meetings = {
  takeover: happened(
    (entry) =>
      (entry.kind === 'grant' && entry.isTakeover) ||
      (entry.kind === 'claim' && entry.outcome === 'takeover'),
  ),
  lostAnswer: fault(/^(lost-answer|hang-after)$/),
  lostCall: fault(/^(failed-before|hang-before|refused)$/),
  lateCall: fault(/^late-call$/),
  lateAnswer: fault(/^late-answer$/),
  duplicateDelivery: kind('delivery-again'),
  busyOrRefused: fault(/^(busy|failed-item|deadlock)$/),
  outage: fault(/^cut-off$/),
  lateWake: happened(
    (entry) =>
      entry.kind === 'claim' && entry.outcome === 'decided' && entry.storeNow - entry.slot >= lateWakeMs,
  ),
  pause: kind('pauses'),
  pausePastTtl: happened(
    (entry) => entry.kind === 'loss' && entry.reason === 'expired' && entry.awakeForMs <= afterStandstillMs,
  ),
  blockedLoop: kind('blocks'),
  suspend: kind('suspends'),
  crash: (_plan, history) => crashes(history).length > 0,
  crashOfAHolder: (_plan, history) => crashes(history).some((index) => isHolding(history, index)),
  rollingRestart: (_plan, history) =>
    history.findIndex(({ kind: what }) => what === 'closes') <
      history.findIndex(({ kind: what }) => what === 'faults-end') &&
    history.some(({ kind: what }) => what === 'closes'),
  editedSchedule: happened((entry) => entry.kind === 'registration' && entry.outcome === 'raised'),
  taskControl: kind('controls'),
  forcedRelease: happened((entry) => entry.kind === 'revoked' && entry.outcome !== 'free'),
  wallClockStep: kind('sets-wall-clock'),
  clockRateSkew: (plan) => plan.nodes.some(({ rate }) => rate !== 1),
  loss: kind('loss'),
  run: kind('run'),
  lostRun: happened(
    (entry) => entry.kind === 'task-end' && entry.task.log.some(({ state }) => state === 'lost'),
  ),
  namedException: kind('exception'),
} as const satisfies Record<string, Met>

export type Meeting = keyof typeof meetings
export const meetingNames: readonly Meeting[] = Object.keys(meetings) as Meeting[]

export function faultsMet(plan: Plan, history: readonly Entry[]): readonly Meeting[] {
  return meetingNames.filter((name) => meetings[name](plan, history))
}

/** Where processes died before the faults ended. */
function crashes(history: readonly Entry[]): number[] {
  const end = history.findIndex((entry) => entry.kind === 'faults-end')
  return history.flatMap((entry, index) => (entry.kind === 'crashes' && index < end ? [index] : []))
}

function isHolding(history: readonly Entry[], crash: number): boolean {
  const { by } = history[crash] as Extract<Entry, { kind: 'crashes' }>
  const held = new Set<string>()
  for (const entry of history.slice(0, crash)) {
    if (entry.kind === 'belief' && entry.by === by) held.add(entry.token)
    if ((entry.kind === 'end' || entry.kind === 'loss') && entry.by === by) held.delete(entry.token)
  }
  return held.size > 0
}
