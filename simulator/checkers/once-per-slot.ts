import type { Entry } from '../history.ts'
import { maxAttempts } from '../life.ts'
import { couldGoBack } from './named-exceptions.ts'
import type { EntryOf, Violation } from './violation.ts'

/** Runs that may happen, by task: the policies of the plan. */
export type CrashPolicies = ReadonlyMap<string, 'skip' | 'retry'>

/**
 * G5: the mark only grows; each slot is decided once, and not before it is due on the store's clock; it is begun once, and
 * again only as the next attempt of a task that wants it, after an attempt that did not complete; and what is run was
 * granted.
 */
export function oncePerSlot(history: readonly Entry[], policies: CrashPolicies): readonly Violation[] {
  const violations: Violation[] = []
  const marks = new Map<string, number>()
  const grants = new Map<string, string>()
  const decided = new Set<string>()
  const completed = new Set<string>()
  const begun = new Set<string>()
  const manual = new Set<string>()
  let hasLostData = false
  const broken = (at: number, what: string): void => void violations.push({ promise: 'G5', at, what })

  const checkGrant = (entry: EntryOf<'claim'>): void => {
    const { at, task, slot, attempt, token, fence, storeNow } = entry
    const name = `${task} ${slot}/${attempt}`
    const run = `${token}/${fence}`
    const before = grants.get(name)
    if (entry.order !== null || manual.has(`${task} ${slot}/${attempt - 1}`)) return checkManual(entry)
    // Asked again, because the answer was lost.
    if (before === run) return
    grants.set(name, run)
    if (before !== undefined) broken(at, `${name} was granted twice.`)
    if (slot > storeNow) broken(at, `${name} was granted before it was due.`)
    if (completed.has(`${task} ${slot}`)) broken(at, `${name} was granted after the slot had been run.`)
    const most = policies.get(task) === 'retry' ? maxAttempts : 1
    if (attempt > most) broken(at, `${name} is one attempt too many.`)
    if (attempt === 1) decide(at, task, slot)
    else if (!grants.has(`${task} ${slot}/${attempt - 1}`)) broken(at, `${name} follows no attempt.`)
  }
  /** What an operator asked for is a further attempt, of any slot that has come. */
  const checkManual = ({
    at,
    task,
    slot,
    attempt,
    token,
    fence,
    storeNow,
    outcome,
  }: EntryOf<'claim'>): void => {
    const name = `${task} ${slot}/${attempt}`
    const run = `${token}/${fence}`
    const before = grants.get(name)
    if (before === run) return
    grants.set(name, run)
    manual.add(name)
    // A store that lost its log counts attempts from one.
    if (before !== undefined && !hasLostData) broken(at, `${name} was granted twice.`)
    if (slot > storeNow) broken(at, `${name} was granted before its time.`)
    const isRetry = outcome === 'takeover' && grants.has(`${task} ${slot}/${attempt - 1}`)
    if (isRetry && policies.get(task) !== 'retry') broken(at, `${name} is one attempt too many.`)
  }
  const decide = (at: number, task: string, slot: number): void => {
    if (decided.has(`${task} ${slot}`)) broken(at, `${task} ${slot} was decided twice.`)
    decided.add(`${task} ${slot}`)
  }
  const checkClaim = (entry: EntryOf<'claim'>): void => {
    const { at, task, slot, outcome, mark, order } = entry
    const before = marks.get(task) ?? -Infinity
    if (mark < before) broken(at, `The mark of ${task} went back from ${before} to ${mark}.`)
    marks.set(task, mark)
    if (outcome === 'granted' || outcome === 'takeover') checkGrant(entry)
    else if (outcome === 'skipped' && order === null) decide(at, task, slot)
  }
  /** The store knows nothing of the task any more, and its clock was set back: it lives through known slots once more. */
  const forget = (task: string): void => {
    for (const known of [grants, decided, completed, begun, manual, marks])
      for (const name of known.keys()) if (name === task || name.startsWith(`${task} `)) known.delete(name)
  }
  for (const [index, entry] of history.entries()) {
    const isNew =
      (entry.kind === 'registration' && entry.outcome === 'created') ||
      (entry.kind === 'claim' && entry.outcome === 'unregistered')
    if (entry.kind === 'exception' && entry.what === 'lose-data') hasLostData = true
    // What something else fires is known again from the slot that is fired.
    const isFiredAnew = hasLostData && isNew && !policies.has(entry.task)
    if ((isNew && couldGoBack(history, index)) || isFiredAnew) forget(entry.task)
    if (entry.kind === 'claim') {
      checkClaim(entry)
    } else if (entry.kind === 'completion' && entry.answer === 'completed') {
      completed.add(`${entry.task} ${entry.slot}`)
    } else if (entry.kind === 'run') {
      const { at, task, slot, attempt, fence } = entry
      const isRenamed = hasLostData && manual.has(`${task} ${slot}/${attempt}`)
      const name = `${task} ${slot}/${attempt}`
      if (begun.has(name) && !isRenamed) broken(at, `${name} was begun twice.`)
      begun.add(name)
      if (grants.get(name)?.endsWith(`/${fence}`) !== true) broken(at, `${name} was begun and not granted.`)
    }
  }
  return violations
}
