import type { ClaimRequest, RunRecord, TaskDriver } from 'leasehold/driver'
import type { RunRow } from '../../../src/driver/task-rules.ts'
import type { MemoryNamespace } from '../../../src/drivers/memory/table.ts'
import type { PlantedBug, PlantingContext } from './planted-bug.ts'

/** Ways in which runs whose node died have been got wrong. */
export const lapsedRunBugs: readonly PlantedBug[] = [
  {
    id: 'lapsed-run-dropped',
    what: 'The next slot takes the place of a lapsed run that was to be retried.',
    caughtBy: ['a lapsed run is taken over: same slot, next attempt, greater fence (M3, N48)'],
    plant: ({ tasks }) => ({
      tasks: {
        claim: (requests, call) =>
          tasks.claim(
            requests.map((request) => ({ ...request, onCrash: 'skip' })),
            call,
          ),
      },
    }),
  },
  {
    id: 'retry-of-the-newest-only',
    what: 'A lapsed run is retried only if no later slot was decided meanwhile.',
    caughtBy: ['slots that were decided while a run was lapsing do not prevent its retry'],
    plant: ({ tasks, table }) => ({
      tasks: {
        claim: (requests, call) =>
          tasks.claim(
            requests.map((request) => {
              const row = table.tasks.get(request.task)
              const run = row?.run ?? null
              return run !== null && run.slot < (row?.mark ?? 0) ? { ...request, onCrash: 'skip' } : request
            }),
            call,
          ),
      },
    }),
  },
  {
    id: 'retry-without-end',
    what: 'A slot is retried more often than is allowed.',
    caughtBy: ['a run is retried as often as is allowed, and not once more'],
    plant: ({ tasks }) => ({
      tasks: {
        claim: (requests, call) =>
          tasks.claim(
            requests.map((request) => ({ ...request, maxAttempts: request.maxAttempts + 1 })),
            call,
          ),
      },
    }),
  },
  {
    id: 'lapse-without-a-row',
    what: 'A lapsed run stays in the log as running for ever.',
    caughtBy: ['the log of a takeover: the lapsed attempt is lost, the next is running'],
    plant: tellingOfLostRuns(() => ({ state: 'running' })),
  },
  {
    id: 'lost-when-it-was-found',
    what: 'A lapsed run counts as under way until somebody found it.',
    caughtBy: ['a lost run ended when its lease lapsed, however much later that is found (G6)'],
    plant: tellingOfLostRuns((row) => ({ endedAt: (row.endedAt ?? 0) + 60 })),
  },
  {
    id: 'takeover-under-the-old-token',
    what: 'A claim that arrives once more when its run has lapsed takes it over: an attempt is used up that nobody runs.',
    caughtBy: [
      'a lapsed run is never taken over under its own token: a claim that arrives twice uses up no attempt',
      'nor is a retry that lapsed, under the token that took it over',
    ],
    plant: (context) => ({
      tasks: claimingAs(context, (run, { token }) =>
        run.token === token ? { ...run, token: 'forgotten' } : run,
      ),
    }),
  },
  {
    id: 'given-up-under-the-old-token',
    what: 'A claim that arrives once more when its run has lapsed gives the run up: its node is told that it is late.',
    caughtBy: ['where a crash is to be skipped, a claim that arrives twice does not give the run up either'],
    plant: (context) => ({
      tasks: claimingAs(context, (run, { token, onCrash }) =>
        run.token === token && onCrash === 'skip' ? null : run,
      ),
    }),
  },
  {
    id: 'overlapped-by-the-lapsed',
    what: 'A slot is skipped because of a lapsed run, whose node claims under the token that it had.',
    caughtBy: [
      'a slot that is claimed under the token of a lapsed run is held, and stays to be had under another',
    ],
    plant: ({ tasks, table, now }) => ({
      tasks: {
        claim: async (requests, call) => {
          const revived = requests.filter(({ task, token }) => lapsedRun(table, task, now())?.token === token)
          for (const { task } of revived) {
            changeRun(table, task, (run) => ({ ...run, token: `not ${run.token}`, expiresAt: now() + 1_000 }))
          }
          const answers = await tasks.claim(requests, call)
          for (const { task, token } of revived) {
            changeRun(table, task, (run) => ({ ...run, token, expiresAt: now() - 1 }))
          }
          return answers
        },
      },
    }),
  },
  {
    id: 'cancelled-run-retried',
    what: 'A run that an operator cancelled is run again because its node died over it.',
    caughtBy: [
      'a lapsed run that was asked to stop is not retried: the next slot is granted',
      'any claim ends it: the task does not run any more, paused or not',
      'a retry that was asked to stop is retried no further',
    ],
    plant: (context) => ({ tasks: claimingAs(context, (run) => ({ ...run, stop: null })) }),
  },
  {
    id: 'cancelled-run-waits-for-the-resume',
    what: 'The cancelled run of a paused task is kept for a retry that never comes.',
    caughtBy: ['any claim ends it: the task does not run any more, paused or not'],
    plant: (context) => ({
      tasks: claimingAs(context, (run, { task }) =>
        context.table.tasks.get(task)?.pausedBy === null ? run : { ...run, stop: null },
      ),
    }),
  },
  {
    id: 'cancelled-without-a-word',
    what: 'The log does not tell a run that was cancelled from one whose node died.',
    caughtBy: ['it is lost, and its row says that it was cancelled, by whom and why'],
    plant: tellingOfLostRuns(() => ({ reason: null, error: null })),
  },
]

/** Claims that find lapsed runs other than they are. */
function claimingAs(
  { tasks, table, now }: PlantingContext,
  seen: (run: RunRow, request: ClaimRequest) => RunRow | null,
): Pick<TaskDriver, 'claim'> {
  return {
    claim: (requests, call) => {
      for (const request of requests) {
        if (lapsedRun(table, request.task, now()) !== null) {
          changeRun(table, request.task, (run) => seen(run, request))
        }
      }
      return tasks.claim(requests, call)
    },
  }
}

function lapsedRun(table: MemoryNamespace, task: string, now: number): RunRow | null {
  const run = table.tasks.get(task)?.run ?? null
  return run !== null && run.expiresAt <= now ? run : null
}

function changeRun(table: MemoryNamespace, task: string, change: (run: RunRow) => RunRow | null): void {
  const row = table.tasks.get(task)
  if (row?.run) table.tasks.set(task, { ...row, run: change(row.run) })
}

/** The log tells something else of lost runs than there is. */
function tellingOfLostRuns(change: (row: RunRecord) => Partial<RunRecord>): PlantedBug['plant'] {
  return ({ tasks }) => ({
    tasks: {
      log: async (query, call) =>
        (await tasks.log(query, call)).map((row) =>
          row.state === 'lost' ? { ...row, ...change(row) } : row,
        ),
    },
  })
}
