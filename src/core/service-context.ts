import type {
  AcquireAnswer,
  AcquireRequest,
  RefreshAnswer,
  RefreshRequest,
  ReleaseAnswer,
  ReleaseRequest,
} from '../driver/lock-driver.ts'
import type { DriverSession } from '../driver/driver.ts'
import { Batcher, type SendBatch } from './batcher.ts'
import { DeadlineWatch } from './deadline.ts'
import { Dependents } from './dependents.ts'
import { Heartbeat } from './heartbeat.ts'
import { holderDescriber } from './holder.ts'
import type { ResolvedLockServiceOptions } from './options.ts'
import { PendingWork } from './pending-work.ts'

/** How many batches of one verb may be in the air. Two keep the store busy while an answer travels. */
const maxInFlight = 2

/** What the parts of one `LockService` share, and what a scheduler on top of it uses. */
export interface ServiceContext {
  readonly options: ResolvedLockServiceOptions
  readonly session: DriverSession
  readonly heartbeat: Heartbeat
  readonly watch: DeadlineWatch
  /** What is closed before the service. */
  readonly dependents: Dependents
  /** What is awaited before the session is closed. */
  readonly pending: PendingWork
  /** The session was closed: nothing is sent any more. */
  readonly isClosed: boolean
  /** Awaits what is pending and in the air, and closes the session. */
  close(): Promise<void>
  readonly acquires: Batcher<AcquireRequest, AcquireAnswer>
  readonly refreshes: Batcher<RefreshRequest, RefreshAnswer>
  readonly releases: Batcher<ReleaseRequest, ReleaseAnswer>
  /** The text that tells operators who holds something. */
  readonly describeHolder: ReturnType<typeof holderDescriber>
  /** A batcher with this service's clock and limits, for another verb of the driver. */
  batcher<Request, Answer>(
    send: SendBatch<Request, Answer>,
    keyOf: (request: Request) => string,
  ): Batcher<Request, Answer>
}

export function createServiceContext(options: ResolvedLockServiceOptions): ServiceContext {
  const { clock, random, driver } = options
  const session = driver.open(options.storedNamespace)
  const { locks } = session
  const pending = new PendingWork()
  const batchers: { idle(): Promise<void> }[] = []
  let isClosed = false
  const newBatcher = <Request, Answer>(
    send: SendBatch<Request, Answer>,
    keyOf: (request: Request) => string,
  ): Batcher<Request, Answer> => {
    const { maxBatch } = driver.abilities
    const made = new Batcher({ clock, random, send, keyOf, maxBatch, maxInFlight })
    batchers.push(made)
    return made
  }
  return {
    options,
    session,
    heartbeat: new Heartbeat(clock),
    watch: new DeadlineWatch(clock),
    dependents: new Dependents(),
    pending,
    get isClosed() {
      return isClosed
    },
    close: async () => {
      await pending.settled()
      await Promise.all(batchers.map((batcher) => batcher.idle()))
      isClosed = true
      await session.close()
    },
    acquires: newBatcher(
      (requests, call) => locks.acquire(requests, call),
      ({ key }) => key,
    ),
    refreshes: newBatcher(
      (requests, call) => locks.refresh(requests, call),
      ({ key }) => key,
    ),
    releases: newBatcher(
      (requests, call) => locks.release(requests, call),
      ({ key }) => key,
    ),
    describeHolder: holderDescriber(),
    batcher: newBatcher,
  }
}
