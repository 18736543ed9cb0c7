import type { Batcher, SendBatch } from '../core/batcher.ts'
import { DriverFault } from '../core/errors.ts'
import { FenceLedger } from '../core/fence-ledger.ts'
import { contextOf, type LockService } from '../core/lock-service.ts'
import type { ServiceContext } from '../core/service-context.ts'
import type {
  ClaimAnswer,
  ClaimRequest,
  CompleteAnswer,
  CompleteRequest,
  RegisterAnswer,
  RegisterRequest,
  RunRefreshAnswer,
  RunRefreshRequest,
  TaskState,
} from '../driver/task-driver.ts'
import { Agenda } from './agenda.ts'
import { Backoff } from './backoff.ts'
import { LapseWatch } from './lapse-watch.ts'
import { StoreTime } from './store-time.ts'

/** What the tasks and runs of one node share: one timer for each purpose, one batcher for each verb. */
export interface Desk {
  readonly context: ServiceContext
  /** For the locks that runs share with others. */
  readonly locks: LockService
  readonly storeTime: StoreTime
  readonly agenda: Agenda
  readonly lapses: LapseWatch
  /** The pause of all who could not reach the store. */
  readonly outage: Backoff
  readonly fences: FenceLedger
  readonly verbs: Verbs
}

export interface Verbs {
  readonly registers: Batcher<RegisterRequest, RegisterAnswer>
  readonly claims: Batcher<ClaimRequest, ClaimAnswer>
  readonly refreshes: Batcher<RunRefreshRequest, RunRefreshAnswer>
  readonly completes: Batcher<CompleteRequest, CompleteAnswer>
}

export interface DeskOptions {
  readonly locks: LockService
  /** Whether the agenda keeps the process alive. */
  readonly keepAlive: boolean
  /** Clocks have jumped: the store's time is not known until the next answer. */
  readonly onClockJump: () => void
}

export function createDesk({ locks, keepAlive, onClockJump }: DeskOptions): Desk {
  const context = contextOf(locks)
  const { clock, random } = context.options
  const storeTime: StoreTime = new StoreTime(clock, () => agenda.rearm())
  const outage = new Backoff({ clock, random, shortestMs: 50, longestMs: 2_000 })
  const agenda = new Agenda({
    clock,
    storeTime,
    keepAlive,
    onClockJump: () => {
      storeTime.distrust()
      onClockJump()
    },
  })
  return {
    context,
    locks,
    storeTime,
    outage,
    agenda,
    lapses: new LapseWatch(context, outage),
    fences: new FenceLedger(),
    verbs: createVerbs(context),
  }
}

function createVerbs(context: ServiceContext): Verbs {
  const { tasks } = context.session
  const byTask = <Request extends { readonly task: string }, Answer extends { readonly outcome: string }>(
    send: SendBatch<Request, Answer>,
  ): Batcher<Request, Answer> =>
    context.batcher(
      async (requests, call) => checked(await send(requests, call)),
      ({ task }) => task,
    )
  return {
    registers: byTask<RegisterRequest, RegisterAnswer>((requests, call) => tasks.register(requests, call)),
    claims: byTask<ClaimRequest, ClaimAnswer>((requests, call) => tasks.claim(requests, call)),
    refreshes: byTask<RunRefreshRequest, RunRefreshAnswer>((requests, call) => tasks.refresh(requests, call)),
    completes: byTask<CompleteRequest, CompleteAnswer>((requests, call) => tasks.complete(requests, call)),
  }
}

/** A driver that breaks its contract is a fault like any other, not an exception in the middle of a task. */
function checked<Answer extends { readonly outcome: string }>(answers: readonly Answer[]): readonly Answer[] {
  if (!answers.every(isAnswer)) throw new DriverFault('unknown', 'The driver gave an answer that is none.')
  return answers
}

function isAnswer(answer: Partial<TaskState> & { readonly outcome?: unknown }): boolean {
  if (typeof answer?.outcome !== 'string') return false
  const { now = 0, mark = 0 } = answer
  return Number.isFinite(now) && Number.isFinite(mark) && 'mark' in answer === 'running' in answer
}
