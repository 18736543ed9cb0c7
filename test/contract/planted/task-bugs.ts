import type { TaskRow } from '../../../src/driver/task-rules.ts'
import type { MemoryNamespace } from '../../../src/drivers/memory/table.ts'
import type { PlantedBug } from './planted-bug.ts'

/** What is left behind in the store by one of the bugs. */
const stopRequests = new WeakMap<MemoryNamespace, string>()

/** Ways in which slots, runs and their log have been got wrong. */
export const taskBugs: readonly PlantedBug[] = [
  {
    id: 'mark-in-the-future',
    what: 'A slot that has not come yet on the store’s clock is granted, so that a fast node moves the mark ahead.',
    caughtBy: ['a slot in the store’s future is early, and moves nothing'],
    plant: ({ tasks, table }) => ({
      tasks: {
        claim: async (requests, call) => {
          const answers = await tasks.claim(requests, call)
          return answers.map((answer, index) => {
            const { task, slot } = requests[index] as { task: string; slot: number }
            const row = table.tasks.get(task)
            if (answer.outcome !== 'early' || row === undefined) return answer
            table.tasks.set(task, { ...row, mark: slot })
            return {
              ...answer,
              outcome: 'granted',
              slot,
              attempt: 1,
              fence: 1,
              remainingMs: 1_000,
              mark: slot,
            }
          })
        },
      },
    }),
  },
  {
    id: 'claim-grants-on-a-missing-record',
    what: 'A claim creates the record and grants the slot: after a loss of data a slot runs twice.',
    caughtBy: ['a claim on an unknown task registers it and grants nothing'],
    plant: ({ tasks, table }) => ({
      tasks: {
        claim: async (requests, call) => {
          const answers = await tasks.claim(requests, call)
          const missing = requests.filter((_, index) => answers[index]?.outcome === 'unregistered')
          for (const { task, after } of missing) {
            table.tasks.set(task, { ...(table.tasks.get(task) as TaskRow), mark: after })
          }
          const again = await tasks.claim(missing, call)
          return answers.map((answer, index) => again[missing.indexOf(requests[index] as never)] ?? answer)
        },
      },
    }),
  },
  {
    id: 'mark-removed-on-completion',
    what: 'The completion clears the record, so that a late node runs the slot again.',
    caughtBy: ['a slot that was decided is decided, also after its run has ended (M1, N46)'],
    plant: ({ tasks, table }) => ({
      tasks: {
        complete: async (requests, call) => {
          const answers = await tasks.complete(requests, call)
          for (const [index, { task, slot }] of requests.entries()) {
            const row = table.tasks.get(task)
            if (answers[index]?.outcome === 'completed' && row?.mark === slot) {
              table.tasks.set(task, { ...row, mark: slot - 1 })
            }
          }
          return answers
        },
      },
    }),
  },
  {
    id: 'claim-without-after',
    what: 'A claim is granted whenever its slot is later than the mark: what lies between is never heard of again.',
    caughtBy: ['a claim that follows another mark is behind and learns the present one (M18)'],
    plant: ({ tasks, table }) => ({
      tasks: {
        claim: (requests, call) =>
          tasks.claim(
            requests.map((request) => ({
              ...request,
              after: table.tasks.get(request.task)?.mark ?? request.after,
            })),
            call,
          ),
      },
    }),
  },
  {
    id: 'pause-ignored',
    what: 'A paused task is claimed like any other.',
    caughtBy: ['a slot that comes due while the task is paused is skipped: paused'],
    plant: ({ tasks, table }) => ({
      tasks: {
        claim: async (requests, call) => {
          const paused = requests.map(({ task }) => table.tasks.get(task)?.pausedBy ?? null)
          const each = (values: readonly (string | null)[]) => {
            for (const [index, { task }] of requests.entries()) {
              const row = table.tasks.get(task)
              if (row && paused[index] !== null)
                table.tasks.set(task, { ...row, pausedBy: values[index] ?? null })
            }
          }
          each([])
          const answers = await tasks.claim(requests, call)
          each(paused)
          return answers
        },
      },
    }),
  },
  {
    id: 'overlap-runs-twice',
    what: 'The next slot is granted although the run before it is under way.',
    caughtBy: ['a slot that comes due while one runs is skipped: overlap (N47)'],
    plant: ({ tasks, table }) => ({
      tasks: {
        claim: (requests, call) => {
          for (const { task, token } of requests) {
            const row = table.tasks.get(task)
            if (row?.run && row.run.token !== token) table.tasks.set(task, { ...row, run: null })
          }
          return tasks.claim(requests, call)
        },
      },
    }),
  },
  {
    id: 'overlap-skip-undecided',
    what: 'A slot that overlaps is answered as skipped, but not decided: a late node runs it afterwards.',
    caughtBy: ['a slot that comes due while one runs is skipped: overlap (N47)'],
    plant: ({ tasks, table }) => ({
      tasks: {
        claim: async (requests, call) => {
          const before = requests.map(({ task }) => table.tasks.get(task))
          const answers = await tasks.claim(requests, call)
          for (const [index, answer] of answers.entries()) {
            const row = before[index]
            if (answer.outcome === 'skipped' && answer.reason === 'overlap' && row)
              table.tasks.set(row.task, row)
          }
          return answers
        },
      },
    }),
  },
  {
    id: 'complete-checks-the-expiry',
    what: 'A completion one moment after the lapse is refused although nobody took over.',
    caughtBy: [
      'only the fence is compared: a completion needs no token and no unexpired lease',
      'a run that ended past its lapse and was not taken over is done',
    ],
    plant: ({ tasks, table, now }) => ({
      tasks: {
        complete: async (requests, call) => {
          const lapsed = requests.some(
            ({ task }) => (table.tasks.get(task)?.run?.expiresAt ?? Infinity) <= now(),
          )
          if (!lapsed) return tasks.complete(requests, call)
          return requests.map(() => ({ outcome: 'late', now: now() }))
        },
      },
    }),
  },
  {
    id: 'complete-without-fence',
    what: 'A completion ends whatever runs, also the successor’s run.',
    caughtBy: [
      'a run that was taken over is fenced out: its refresh is lost, its completion late (M17)',
      'a completion under another fence is late and disturbs nobody',
    ],
    plant: ({ tasks, table }) => ({
      tasks: {
        complete: (requests, call) =>
          tasks.complete(
            requests.map((request) => {
              const run = table.tasks.get(request.task)?.run
              return run ? { ...request, slot: run.slot, attempt: run.attempt, fence: run.fence } : request
            }),
            call,
          ),
      },
    }),
  },
  {
    id: 'complete-is-not-idempotent',
    what: 'A completion that is sent again answers late.',
    caughtBy: ['a completion that is sent again answers completed again, and changes nothing'],
    plant: ({ tasks, table, now }) => ({
      tasks: {
        complete: async (requests, call) => {
          const idle = requests.every(({ task }) => (table.tasks.get(task)?.run ?? null) === null)
          return idle ? requests.map(() => ({ outcome: 'late', now: now() })) : tasks.complete(requests, call)
        },
      },
    }),
  },
  {
    id: 'run-refresh-shortens',
    what: 'A refresh of a run sets its expiry to the ttl from now, also if that is sooner.',
    caughtBy: ['a refresh never shortens a run’s lease'],
    plant: ({ tasks, table, now }) => ({
      tasks: {
        refresh: async (requests, call) => {
          const answers = await tasks.refresh(requests, call)
          for (const [index, { task, ttlMs }] of requests.entries()) {
            const row = table.tasks.get(task)
            if (answers[index]?.outcome !== 'held' || !row?.run) continue
            table.tasks.set(task, { ...row, run: { ...row.run, expiresAt: now() + ttlMs } })
          }
          return answers
        },
      },
    }),
  },
  {
    id: 'stop-request-not-told',
    what: 'A refresh does not pass on that the run is asked to stop.',
    caughtBy: ['a cancelled run is asked to stop at each refresh'],
    plant: ({ tasks }) => ({
      tasks: {
        refresh: async (requests, call) =>
          (await tasks.refresh(requests, call)).map((answer) =>
            answer.outcome === 'held' ? { ...answer, stop: null } : answer,
          ),
      },
    }),
  },
  {
    id: 'stop-request-inherited',
    what: 'The stop request of a run is told to the run after it.',
    caughtBy: ['the run after a cancelled one is not asked to stop'],
    plant: ({ tasks, table }) => ({
      tasks: {
        control: async (request, call) => {
          const answer = await tasks.control(request, call)
          const isStop = request.kind === 'cancel' && answer.outcome === 'applied'
          if (isStop) stopRequests.set(table, request.by)
          return answer
        },
        claim: async (requests, call) => {
          const answers = await tasks.claim(requests, call)
          const stop = stopRequests.get(table)
          for (const { task } of requests) {
            const row = table.tasks.get(task)
            if (row?.run && stop !== undefined) table.tasks.set(task, { ...row, run: { ...row.run, stop } })
          }
          return answers
        },
      },
    }),
  },
  {
    id: 'control-applied-twice',
    what: 'A control request that is sent again is applied again.',
    caughtBy: ['a request applies once: sent again it is repeated, and undoes nothing'],
    plant: ({ tasks }) => {
      let count = 0
      return {
        tasks: {
          control: (request, call) =>
            tasks.control({ ...request, requestId: `${request.requestId}-${count++}` }, call),
        },
      }
    },
  },
  {
    id: 'cancel-without-compare',
    what: 'A cancel stops whatever runs by now.',
    caughtBy: ['a cancel never hits another run than the operator saw'],
    plant: ({ tasks }) => ({
      tasks: { control: (request, call) => tasks.control({ ...request, fence: null }, call) },
    }),
  },
  {
    id: 'version-stands-still',
    what: 'The control version does not rise with a request.',
    caughtBy: ['every applied request raises the version by one, and poll shows it'],
    plant: ({ tasks }) => ({
      tasks: { poll: async (call) => ({ ...(await tasks.poll(call)), version: 0 }) },
    }),
  },
  {
    id: 'registration-back-fills',
    what: 'A new task begins with a mark in the past, so that slots before its registration run.',
    caughtBy: ['an unknown task is created with the store’s time as its mark, so that it never back-fills'],
    plant: ({ tasks, table }) => ({
      tasks: {
        register: async (requests, call) => {
          const answers = await tasks.register(requests, call)
          return answers.map((answer, index) => {
            const row = table.tasks.get((requests[index] as { task: string }).task)
            if (answer.outcome !== 'created' || row === undefined) return answer
            table.tasks.set(row.task, { ...row, mark: 0 })
            return { ...answer, mark: 0 }
          })
        },
      },
    }),
  },
  {
    id: 'old-schedule-bumps-the-mark',
    what: 'Each registration with another fingerprint is taken for an edit, also that of an old pod.',
    caughtBy: ['an old schedule that starts again is superseded: a crash-looping old pod changes nothing'],
    plant: ({ tasks, table }) => ({
      tasks: {
        register: (requests, call) => {
          for (const { task } of requests) {
            const row = table.tasks.get(task)
            if (row !== undefined) table.tasks.set(task, { ...row, former: [] })
          }
          return tasks.register(requests, call)
        },
      },
    }),
  },
  {
    id: 'old-schedule-claims',
    what: 'A claim does not look at the schedule it was made under.',
    caughtBy: ['a claim under another schedule is superseded and changes nothing'],
    plant: ({ tasks, table }) => ({
      tasks: {
        claim: (requests, call) =>
          tasks.claim(
            requests.map((request) => ({
              ...request,
              fingerprint: table.tasks.get(request.task)?.fingerprint ?? request.fingerprint,
            })),
            call,
          ),
      },
    }),
  },
  {
    id: 'edit-fires-the-past',
    what: 'An edited schedule keeps the old mark, so that what was due before the edit fires.',
    caughtBy: ['a new schedule never fires the past: what was due is closed as missed, for it was edited'],
    plant: ({ tasks, table }) => ({
      tasks: {
        register: async (requests, call) => {
          const marks = requests.map(({ task }) => table.tasks.get(task)?.mark)
          const answers = await tasks.register(requests, call)
          return answers.map((answer, index) => {
            const mark = marks[index]
            const row = table.tasks.get((requests[index] as { task: string }).task)
            if (answer.outcome !== 'raised' || row === undefined || mark === undefined) return answer
            table.tasks.set(row.task, { ...row, mark })
            return { ...answer, mark }
          })
        },
      },
    }),
  },
  {
    id: 'gap-not-kept',
    what: 'The log does not say which mark a slot followed.',
    caughtBy: ['every slot has a reason: the rows that moved the mark follow each other without a gap (G6)'],
    plant: ({ tasks }) => ({
      tasks: {
        log: async (query, call) =>
          (await tasks.log(query, call)).map((row) => ({ ...row, after: row.slot - 1 })),
      },
    }),
  },
  {
    id: 'plain-lock-is-the-task',
    what: 'A plain release of a key that is called like a task resets the task.',
    caughtBy: [
      'a plain lock of a task’s name is another thing than the task (release, revoke and purge included)',
    ],
    plant: ({ locks, table }) => ({
      locks: {
        release: (requests, call) => {
          for (const { key } of requests) table.tasks.delete(key)
          return locks.release(requests, call)
        },
      },
    }),
  },
  {
    id: 'log-purge-takes-the-running',
    what: 'A purge of the log deletes rows of runs under way.',
    caughtBy: ['a purge deletes rows that ended long enough ago, and says how many'],
    plant: ({ table }) => ({
      tasks: {
        purge: async ({ limit }) => {
          let count = 0
          for (const rows of table.runs.values()) {
            for (const id of [...rows.keys()].slice(0, limit - count)) {
              rows.delete(id)
              count++
            }
          }
          return count
        },
      },
    }),
  },
  {
    id: 'early-on-the-caller’s-clock',
    what: 'Whether a slot has come is judged by the wall clock of whoever asks.',
    needs: 'server clock',
    caughtBy: ['a node an hour ahead claims slots on the store’s clock'],
    plant: ({ tasks }) => ({
      tasks: {
        claim: (requests, call) =>
          tasks.claim(
            requests.map((request) => (request.slot <= Date.now() ? { ...request, slot: 1 } : request)),
            call,
          ),
      },
    }),
  },
]
