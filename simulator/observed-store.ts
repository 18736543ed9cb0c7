import type { AcquireAnswer, DriverSession, LockDriver, TaskDriver } from '../src/driver/index.ts'
import type { MemoryNamespace } from '../src/drivers/memory/table.ts'
import type { History } from './history.ts'

export interface Observer {
  readonly history: History
  readonly table: MemoryNamespace
  readonly now: () => number
  /** A key was granted: whoever else believes to hold it is asked now. */
  onGrant(key: string, token: string, fence: number): void
}

export const taskKey = (task: string): string => `task ${task}`

/** A session of one node, whose effects on the store are written down the moment they happen. */
export function observedSession(session: DriverSession, by: string, observer: Observer): DriverSession {
  return {
    locks: observedLocks(session.locks, by, observer),
    tasks: observedTasks(session.tasks, by, observer),
    listen: session.listen,
    close: () => session.close(),
  }
}

function observedLocks(locks: LockDriver, by: string, observer: Observer): LockDriver {
  const { history, table, now } = observer
  return {
    ...locks,
    acquire: async (requests, call) => {
      const before = requests.map(({ key }) => table.leases.get(key))
      const answers: readonly AcquireAnswer[] = await locks.acquire(requests, call)
      for (const [index, { key, token, ttlMs }] of requests.entries()) {
        const answer = answers[index]
        if (answer?.outcome === 'held') history.add({ kind: 'refusal', by, key })
        if (answer?.outcome !== 'granted') continue
        const { fence, remainingMs: forMs } = answer
        const row = before[index]
        const isAgain = row?.token === token && row.fence === fence
        const isTakeover =
          row !== undefined && row.token !== null && row.token !== token && row.expiresAt <= now()
        history.add({ kind: 'grant', by, key, token, fence, forMs, ttlMs, isAgain, isTakeover })
        observer.onGrant(key, token, fence)
      }
      return answers
    },
    refresh: async (requests, call) => {
      const answers = await locks.refresh(requests, call)
      for (const [index, { key, token, ttlMs }] of requests.entries()) {
        const answer = answers[index]
        if (answer?.outcome !== 'held' && answer?.outcome !== 'lost') continue
        const forMs = answer.outcome === 'held' ? answer.remainingMs : 0
        history.add({ kind: 'renewal', by, key, token, outcome: answer.outcome, forMs, ttlMs })
      }
      return answers
    },
    release: async (requests, call) => {
      const before = requests.map(({ key }) => table.leases.get(key))
      const at = now()
      const answering = locks.release(requests, call)
      // The in-process store has done it by now, and nothing else has happened since.
      const hasHarmed = requests.map(({ key, token }, index) => {
        const row = before[index]
        const isOfAnother =
          row !== undefined && row.token !== null && row.token !== token && row.expiresAt > at
        const after = table.leases.get(key)
        return isOfAnother && (after?.token !== row.token || after.expiresAt < row.expiresAt)
      })
      const answers = await answering
      for (const [index, { key, token }] of requests.entries()) {
        const outcome = answers[index]?.outcome ?? 'nothing'
        history.add({ kind: 'freeing', by, key, token, outcome, hasHarmed: hasHarmed[index] === true })
      }
      return answers
    },
    peek: async (keys, call) => {
      const records = await locks.peek(keys, call)
      for (const [index, key] of keys.entries())
        history.add(records[index] === null ? { kind: 'emptiness', by, key } : { kind: 'refusal', by, key })
      return records
    },
  }
}

function observedTasks(tasks: TaskDriver, by: string, observer: Observer): TaskDriver {
  const { history, table, now } = observer
  return {
    ...tasks,
    register: async (requests, call) => {
      const answers = await tasks.register(requests, call)
      for (const [index, { task }] of requests.entries()) {
        const answer = answers[index]
        const mark = answer !== undefined && 'mark' in answer ? answer.mark : 0
        history.add({ kind: 'registration', by, task, outcome: answer?.outcome ?? 'nothing', mark })
      }
      return answers
    },
    claim: async (requests, call) => {
      const before = requests.map(({ task }) => table.tasks.get(task)?.run ?? null)
      const answers = await tasks.claim(requests, call)
      for (const [index, request] of requests.entries()) {
        const { task, slot, after, token, ttlMs, decide, gap, orders } = request
        const answer = answers[index]
        if (answer === undefined || !('mark' in answer)) continue
        const { outcome, mark } = answer
        const isGrant = answer.outcome === 'granted' || answer.outcome === 'takeover'
        history.add({
          kind: 'claim',
          by,
          task,
          slot: isGrant ? answer.slot : slot,
          after,
          decide,
          gap,
          order: orders === undefined || orders === null ? null : firstOf(orders.before),
          outcome,
          reason: 'reason' in answer ? answer.reason : '',
          token,
          attempt: isGrant ? answer.attempt : 0,
          fence: isGrant ? answer.fence : 0,
          mark,
          storeNow: now(),
        })
        if (!isGrant) continue
        const { fence, remainingMs: forMs } = answer
        const isAgain = before[index]?.token === token && before[index].fence === fence
        const isTakeover = outcome === 'takeover' && !isAgain
        const key = taskKey(task)
        history.add({ kind: 'grant', by, key, token, fence, forMs, ttlMs, isAgain, isTakeover })
        observer.onGrant(key, token, fence)
      }
      return answers
    },
    refresh: async (requests, call) => {
      const answers = await tasks.refresh(requests, call)
      for (const [index, { task, token, ttlMs }] of requests.entries()) {
        const answer = answers[index]
        if (answer?.outcome !== 'held' && answer?.outcome !== 'lost') continue
        const forMs = answer.outcome === 'held' ? answer.remainingMs : 0
        history.add({ kind: 'renewal', by, key: taskKey(task), token, outcome: answer.outcome, forMs, ttlMs })
      }
      return answers
    },
    complete: async (requests, call) => {
      const answers = await tasks.complete(requests, call)
      for (const [index, { task, slot, attempt, fence, outcome, reason }] of requests.entries()) {
        const answer = answers[index]?.outcome ?? 'nothing'
        history.add({ kind: 'completion', by, task, slot, attempt, fence, outcome, reason, answer })
      }
      return answers
    },
    control: async (request, call) => {
      const { task, kind: what, requestId, orders } = request
      const answer = await tasks.control(request, call)
      const { outcome } = answer
      history.add({ kind: 'request', by, task, what, requestId, outcome, orders: orders?.after ?? '' })
      return answer
    },
  }
}

/** The id of the first request of an order text. */
function firstOf(orders: string): string {
  const [first] = JSON.parse(orders) as readonly { readonly id: string }[]
  return first?.id ?? ''
}
