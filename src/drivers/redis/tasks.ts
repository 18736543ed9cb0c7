import type { DriverFault } from '../../core/errors.ts'
import type { CallOptions } from '../../driver/driver.ts'
import type {
  ClaimAnswer,
  ClaimRequest,
  CompleteAnswer,
  CompleteRequest,
  ControlAnswer,
  ControlRequest,
  LogQuery,
  PollAnswer,
  RegisterAnswer,
  RegisterRequest,
  RunRecord,
  RunRefreshAnswer,
  RunRefreshRequest,
  TaskDriver,
  TaskRecord,
} from '../../driver/task-driver.ts'
import { claimLua } from './claim.lua.ts'
import type { RedisConnection } from './clients.ts'
import { completeLua } from './complete.lua.ts'
import { controlLua } from './control.lua.ts'
import { itemFault } from './faults.ts'
import { inspectLua } from './inspect.lua.ts'
import type { RedisKeys } from './keys.ts'
import { logLua } from './log.lua.ts'
import { pollLua } from './poll.lua.ts'
import { purgeLua } from './purge.lua.ts'
import { refreshRunLua } from './refresh-run.lua.ts'
import { registerLua } from './register.lua.ts'
import { runScript, script, type Reply, type Script } from './scripts.ts'
import { readRun, readTask, readTaskState } from './task-replies.ts'
import { toMicros } from './words.ts'

const scripts = {
  register: script(registerLua),
  claim: script(claimLua),
  refresh: script(refreshRunLua),
  complete: script(completeLua),
  control: script(controlLua),
  poll: script(pollLua),
  inspect: script(inspectLua),
  log: script(logLua),
  purge: script(purgeLua),
}

/** Scheduled tasks and their slots in Redis: every call is one script. */
export class RedisTasks implements TaskDriver {
  readonly #connect: (call: CallOptions) => Promise<RedisConnection>
  readonly #keys: RedisKeys

  constructor(connect: (call: CallOptions) => Promise<RedisConnection>, keys: RedisKeys) {
    this.#connect = connect
    this.#keys = keys
  }

  async register(
    requests: readonly RegisterRequest[],
    call: CallOptions,
  ): Promise<readonly RegisterAnswer[]> {
    const args = requests.flatMap(({ fingerprint, definition, starting, attendMs, since }) => [
      fingerprint,
      definition,
      starting ? '1' : '0',
      String(attendMs),
      String(since ?? ''),
    ])
    const answers = await this.#ask(scripts.register, namesOf(requests), args, call)
    return answers.map((words, index) => {
      const outcome = words[0] as Exclude<RegisterAnswer['outcome'], 'busy'>
      if (outcome === 'failed') return this.#failed(requests[index]?.task, words)
      return { outcome, ...readTaskState(words) }
    })
  }

  async claim(requests: readonly ClaimRequest[], call: CallOptions): Promise<readonly ClaimAnswer[]> {
    const args = requests.flatMap((request) => [
      String(request.slot),
      String(request.after),
      request.gap,
      request.fingerprint,
      request.definition,
      String(request.attendMs),
      request.token,
      toMicros(request.ttlMs),
      request.holder,
      request.overlap,
      request.onCrash,
      String(request.maxAttempts),
      request.decide,
      request.reason,
      request.orders ? '1' : '0',
      request.orders?.before ?? '',
      request.orders?.after ?? '',
    ])
    const answers = await this.#ask(scripts.claim, namesOf(requests), args, call)
    return answers.map((words, index) => this.#claimAnswer(requests[index]?.task, words))
  }

  async refresh(
    requests: readonly RunRefreshRequest[],
    call: CallOptions,
  ): Promise<readonly RunRefreshAnswer[]> {
    const args = requests.flatMap(({ token, ttlMs }) => [token, toMicros(ttlMs)])
    const answers = await this.#ask(scripts.refresh, namesOf(requests), args, call)
    return answers.map((words, index) => {
      const [outcome, remaining, isStopping, stop = ''] = words
      if (outcome === 'failed') return this.#failed(requests[index]?.task, words)
      if (outcome === 'lost') return { outcome }
      return {
        outcome: 'held',
        remainingMs: Number(remaining) / 1000,
        stop: isStopping === '1' ? stop : null,
      }
    })
  }

  async complete(
    requests: readonly CompleteRequest[],
    call: CallOptions,
  ): Promise<readonly CompleteAnswer[]> {
    const args = requests.flatMap(({ slot, attempt, fence, outcome, reason, error }) => [
      String(slot),
      String(attempt),
      String(fence),
      outcome,
      ...optional(reason),
      ...optional(error),
    ])
    const answers = await this.#ask(scripts.complete, namesOf(requests), args, call)
    return answers.map((words, index) => {
      const [outcome, now] = words
      if (outcome === 'failed') return this.#failed(requests[index]?.task, words)
      return { outcome: outcome as 'completed' | 'late', now: Number(now) }
    })
  }

  async control(request: ControlRequest, call: CallOptions): Promise<ControlAnswer> {
    const { task, kind, requestId, by, fence, orders } = request
    const args = [
      kind,
      requestId,
      by,
      ...optional(fence === null ? null : String(fence)),
      orders?.before ?? '',
      orders?.after ?? '',
    ]
    const [words = []] = await this.#ask(scripts.control, [task], args, call)
    const [outcome, version] = words
    if (outcome === 'failed') return this.#failed(task, words)
    if (outcome === 'applied' || outcome === 'repeated') return { outcome, version: Number(version) }
    return { outcome: outcome as 'idle' | 'changed' | 'unregistered' }
  }

  async poll(call: CallOptions): Promise<PollAnswer> {
    const [version, now] = await this.#run(scripts.poll, [], [], call)
    return { version: Number(version), now: Number(now) }
  }

  async inspect(tasks: readonly string[] | null, call: CallOptions): Promise<readonly (TaskRecord | null)[]> {
    if (tasks?.length === 0) return []
    const answers = await this.#ask(scripts.inspect, tasks ?? [], [], call)
    const records = answers.map(([task = '', ...words]) => {
      if (words[0] === 'failed') throw this.#failed(task, words).error
      return words[0] === 'known' ? readTask(task, words) : null
    })
    if (tasks !== null) return records
    return records.filter((record) => record !== null).toSorted(byName)
  }

  async log({ task, from, to, limit }: LogQuery, call: CallOptions): Promise<readonly RunRecord[]> {
    const args = [String(from ?? '-inf'), String(to ?? '+inf'), String(limit)]
    const members = await runScript(await this.#connect(call), scripts.log, [this.#keys.runs(task)], args)
    return members.map((member) => {
      const run = readRun(task, String(member))
      if (run === null) throw itemFault(this.#keys.runs(task), 'FOREIGN a member is no row of a run log')
      return run
    })
  }

  async purge(
    { retentionMs, limit }: { readonly retentionMs: number; readonly limit: number },
    call: CallOptions,
  ): Promise<number> {
    const [deleted] = await this.#run(scripts.purge, [], [String(retentionMs), String(limit)], call)
    return Number(deleted)
  }

  async #ask(
    what: Script,
    tasks: readonly string[],
    args: readonly string[],
    call: CallOptions,
  ): Promise<readonly (readonly string[])[]> {
    return (await this.#run(what, tasks, args, call)) as readonly (readonly string[])[]
  }

  async #run(
    what: Script,
    tasks: readonly string[],
    args: readonly string[],
    call: CallOptions,
  ): Promise<readonly Reply[]> {
    const { control, tasks: names, ended } = this.#keys
    const own = tasks.flatMap((task) => [this.#keys.task(task), this.#keys.runs(task)])
    return runScript(await this.#connect(call), what, [control, names, ended, ...own], args)
  }

  #claimAnswer(task: string | undefined, words: readonly string[]): ClaimAnswer {
    const outcome = words[0] as Exclude<ClaimAnswer['outcome'], 'busy'>
    if (outcome === 'failed') return this.#failed(task, words)
    const state = readTaskState(words)
    if (outcome === 'skipped') return { outcome, reason: words[11] ?? '', ...state }
    if (outcome !== 'granted' && outcome !== 'takeover') return { outcome, ...state }
    const { slot = 0, attempt = 0, fence = 0, remainingMs = 0 } = state.running ?? {}
    return { outcome, slot, attempt, fence, remainingMs, ...state }
  }

  #failed(
    task: string | undefined,
    words: readonly string[],
  ): { readonly outcome: 'failed'; readonly error: DriverFault } {
    return { outcome: 'failed', error: itemFault(this.#keys.task(task ?? ''), words[1] ?? '') }
  }
}

function namesOf(requests: readonly { readonly task: string }[]): readonly string[] {
  return requests.map(({ task }) => task)
}

/** A text that may be missing, as two arguments. */
function optional(text: string | null): readonly [string, string] {
  return text === null ? ['0', ''] : ['1', text]
}

/** By bytes, as the other stores do. */
function byName(a: TaskRecord, b: TaskRecord): number {
  return Buffer.compare(Buffer.from(a.task), Buffer.from(b.task))
}
