import { randomUUID } from 'node:crypto'
import { DriverFault, InvalidOptionError, quoted, UnknownTaskError } from '../core/errors.ts'
import { readOptions } from '../core/read-options.ts'
import type { ServiceContext } from '../core/service-context.ts'
import { askStore } from '../core/store-call.ts'
import { toStoredKey } from '../core/stored-key.ts'
import type { BusyAnswer, FailedAnswer } from '../driver/driver.ts'
import type { ControlAnswer, ControlRequest } from '../driver/task-driver.ts'

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

const verbs = { pause: 'pause', resume: 'resume', cancel: 'cancel the run of' } as const

/**
 * Puts one operator request to the store.
 *
 * @throws InvalidOptionError, UnknownTaskError, StoreUnavailableError, StoreUnusableError
 */
export async function requestControl(
  context: ServiceContext,
  kind: 'pause' | 'resume' | 'cancel',
  name: string,
  options: CancelOptions,
): Promise<CancelOutcome> {
  const request = resolveControl(context, kind, name, options)
  const answer = await sendControl(context, `${verbs[kind]} ${quoted(name)}`, request)
  if (answer.outcome === 'unregistered') throw new UnknownTaskError(name)
  return answer.outcome === 'applied' || answer.outcome === 'repeated' ? answer.outcome : 'idle'
}

/**
 * The same to the runs of a task's lanes, whose stored names these are; to none but that of the fence if there is one.
 *
 * @param outcome what came of asking the task itself
 * @throws StoreUnavailableError, StoreUnusableError
 */
export async function cancelLanes(
  context: ServiceContext,
  outcome: CancelOutcome,
  lanes: readonly string[],
  options: CancelOptions,
): Promise<CancelOutcome> {
  if (lanes.length === 0 || (outcome === 'applied' && options.fence !== undefined)) return outcome
  const request = resolveControl(context, 'cancel', 'lane', options)
  const answers = await Promise.all(
    lanes.map((task) => sendControl(context, 'cancel a run', { ...request, task })),
  )
  const outcomes = new Set<string>([outcome, ...answers.map((answer) => answer.outcome)])
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
  if (fence !== null && !Number.isSafeInteger(fence)) {
    throw new InvalidOptionError(
      'fence',
      'fence must be the fence of the run to cancel, as history() shows it.',
    )
  }
  return { task, kind, requestId, by, fence }
}

function checkText(option: string, text: unknown, longest: number): void {
  const isFine =
    typeof text === 'string' &&
    text !== '' &&
    text.length <= longest &&
    text.isWellFormed() &&
    !text.includes('\0')
  if (isFine) return
  throw new InvalidOptionError(option, `${option} must be a text of 1 to ${longest} characters, without NUL.`)
}
