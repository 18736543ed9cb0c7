import { randomUUID } from 'node:crypto'
import { DriverFault, quoted, requireOption, UnknownTaskError } from '../core/errors.ts'
import { readOptions } from '../core/read-options.ts'
import type { ServiceContext } from '../core/service-context.ts'
import { askStore } from '../core/store-call.ts'
import { toStoredKey } from '../core/stored-key.ts'
import type { BusyAnswer, FailedAnswer } from '../driver/driver.ts'
import type { ControlAnswer, ControlRequest } from '../driver/task-driver.ts'
import { lanesOf, readTask } from './task-records.ts'

export interface ControlOptions {
  /** Who asks and why, for whoever looks at the task later; at most 300 characters. Default: host and process. */
  readonly by?: string | undefined
  /** Makes the request apply once, however often it is sent. At most 100 characters. Default: a new one. */
  readonly requestId?: string | undefined
}

export interface CancelOptions extends ControlOptions {
  /** Only the run with this fence, the one that was looked at. Default: whatever runs now. */
  readonly fence?: number | undefined
}

/** - `repeated`: a request with this id was applied before */
export type ControlOutcome = 'applied' | 'repeated'

/** - `idle`: nothing ran that could be asked to stop */
export type CancelOutcome = ControlOutcome | 'idle'

const controlOptionNames = ['by', 'requestId'] as const
const cancelOptionNames = [...controlOptionNames, 'fence'] as const

/**
 * Pauses or resumes a task.
 *
 * @throws InvalidOptionError, UnknownTaskError, StoreUnavailableError, StoreUnusableError
 */
export async function requestControl(
  context: ServiceContext,
  kind: 'pause' | 'resume',
  name: string,
  options: ControlOptions,
): Promise<ControlOutcome> {
  const request = resolveControl(context, kind, name, options)
  const { outcome } = await sendControl(context, `${kind} ${quoted(name)}`, request)
  if (outcome === 'unregistered') throw new UnknownTaskError(name)
  return outcome === 'repeated' ? outcome : 'applied'
}

/**
 * Asks what runs of a task to stop, also in its lanes; nothing but the run of the fence if there is one.
 *
 * @throws InvalidOptionError, UnknownTaskError, StoreUnavailableError, StoreUnusableError
 */
export async function requestCancel(
  context: ServiceContext,
  name: string,
  options: CancelOptions,
): Promise<CancelOutcome> {
  const request = resolveControl(context, 'cancel', name, options)
  const ask = async (task: string): Promise<string> =>
    (await sendControl(context, `cancel the run of ${quoted(name)}`, { ...request, task })).outcome
  const outcome = await ask(request.task)
  if (outcome === 'unregistered') throw new UnknownTaskError(name)
  const isFound = outcome === 'applied' && request.fence !== null
  const lanes = isFound ? [] : lanesOf(await readTask(context, name))
  const outcomes = new Set([outcome, ...(await Promise.all(lanes.map(ask)))])
  return outcomes.has('applied') ? 'applied' : outcomes.has('repeated') ? 'repeated' : 'idle'
}

/** @throws StoreUnavailableError, StoreUnusableError */
export function sendControl(
  context: ServiceContext,
  what: string,
  request: ControlRequest,
): Promise<Exclude<ControlAnswer, BusyAnswer | FailedAnswer>> {
  return askStore(context, what, async (call) => {
    const answer = await context.session.tasks.control(request, call)
    if (answer.outcome === 'failed') throw answer.error
    if (answer.outcome === 'busy')
      throw new DriverFault('retry', 'The record was locked by other statements.')
    return answer
  })
}

/** @throws InvalidOptionError */
export function resolveControl(
  context: ServiceContext,
  kind: ControlRequest['kind'],
  name: string,
  options: CancelOptions,
): ControlRequest {
  const task = toStoredKey('name', name)
  const known = kind === 'cancel' ? cancelOptionNames : controlOptionNames
  const {
    by = context.describeHolder({}),
    requestId = randomUUID(),
    fence = null,
  } = readOptions<CancelOptions>(kind, options, known)
  checkText('by', by, 300)
  checkText('requestId', requestId, 100)
  const isFence = fence === null || Number.isSafeInteger(fence)
  requireOption(isFence, 'fence', 'the fence of the run to cancel, as history() shows it')
  return { task, kind, requestId, by, fence }
}

function checkText(option: string, text: unknown, longest: number): void {
  const isFine =
    typeof text === 'string' &&
    text !== '' &&
    text.length <= longest &&
    text.isWellFormed() &&
    !text.includes('\0')
  requireOption(isFine, option, `a text of 1 to ${longest} characters, without NUL`)
}
