import type { Batcher, SendBatch } from '../core/batcher.ts'
import type { FenceLedger } from '../core/fence-ledger.ts'
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
} from '../driver/task-driver.ts'
import type { Agenda } from './agenda.ts'
import type { Backoff } from './backoff.ts'
import type { LapseWatch } from './lapse-watch.ts'
import type { StoreTime } from './store-time.ts'

/** What the tasks and runs of one node share: one timer for each purpose, one batcher for each verb. */
export interface Desk {
  readonly context: ServiceContext
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

export function createVerbs(context: ServiceContext): Verbs {
  const { tasks } = context.session
  const byTask = <Request extends { readonly task: string }, Answer>(
    send: SendBatch<Request, Answer>,
  ): Batcher<Request, Answer> => context.batcher(send, ({ task }) => task)
  return {
    registers: byTask<RegisterRequest, RegisterAnswer>((requests, call) => tasks.register(requests, call)),
    claims: byTask<ClaimRequest, ClaimAnswer>((requests, call) => tasks.claim(requests, call)),
    refreshes: byTask<RunRefreshRequest, RunRefreshAnswer>((requests, call) => tasks.refresh(requests, call)),
    completes: byTask<CompleteRequest, CompleteAnswer>((requests, call) => tasks.complete(requests, call)),
  }
}
