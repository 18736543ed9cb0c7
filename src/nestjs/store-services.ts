import {
  connect,
  LockService,
  ScheduledTaskStore,
  type StopOptions,
  TaskScheduler,
  type TaskHandler,
  type TaskOptions,
} from '../index.ts'
import type { LeaseholdModuleOptions } from './module-options.ts'

/** The services of one store. */
export interface StoreServices {
  readonly locks: LockService
  readonly tasks: ApplicationScheduler
  readonly taskStore: ScheduledTaskStore
  /** Whether the service is ours to close. */
  readonly isOwn: boolean
}

/** @throws InvalidOptionError, DriverMissingError, StoreUnavailableError, StoreUnusableError */
export async function openServices(options: LeaseholdModuleOptions): Promise<StoreServices> {
  const { scheduler = {} } = options
  const { locks, isOwn } = await openLocks(options)
  try {
    const { timeZone, logRetention, ttl, heartbeat, maxLifetime } = scheduler
    // The application says itself what keeps it alive.
    const tasks = new ApplicationScheduler({ ...scheduler, locks, keepAlive: false })
    // Nothing is to be stopped yet: a drain that cannot be used is refused now and not when the application ends.
    await tasks.stop({ drain: options.drain })
    const taskStore = new ScheduledTaskStore({ locks, timeZone, logRetention, ttl, heartbeat, maxLifetime })
    return { locks, isOwn, tasks, taskStore }
  } catch (error) {
    if (isOwn) await locks.close()
    throw error
  }
}

/** Starts with the application, or with its first task if that comes later: an application without any asks the store nothing. */
export class ApplicationScheduler extends TaskScheduler {
  #hasTasks = false
  #onFirstTask: (() => void) | null = null

  override schedule(name: string, options: TaskOptions, handler: TaskHandler): void {
    super.schedule(name, options, handler)
    this.#hasTasks = true
    this.#onFirstTask?.()
    this.#onFirstTask = null
  }

  override stop(options?: StopOptions): Promise<void> {
    this.#onFirstTask = null
    return super.stop(options)
  }

  /**
   * @param onError what a start that comes later fails with
   * @throws StoreUnusableError
   */
  async startWithTasks(onStart: () => void, onError: (error: unknown) => void): Promise<void> {
    const begin = (): Promise<void> => {
      onStart()
      return this.start()
    }
    if (this.#hasTasks) await begin()
    else this.#onFirstTask = () => void begin().catch(onError)
  }
}

async function openLocks(
  options: LeaseholdModuleOptions,
): Promise<{ readonly locks: LockService; readonly isOwn: boolean }> {
  const { locks, url, client, driver, ...rest } = options
  if (locks !== undefined) return { locks, isOwn: false }
  const { guard: _guard, unguarded: _unguarded, drain: _drain, scheduler: _scheduler, ...service } = rest
  const given = Object.fromEntries(Object.entries(service).filter(([, value]) => value !== undefined))
  if (driver === undefined) {
    return { locks: await connect(url, client === undefined ? given : { ...given, client }), isOwn: true }
  }
  const namespace = service.namespace ?? process.env['LEASEHOLD_NAMESPACE']
  const named = namespace === undefined ? given : { ...given, namespace }
  return { locks: new LockService({ ...named, driver }), isOwn: true }
}
