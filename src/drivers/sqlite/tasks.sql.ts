import type { SqliteTables } from './schema.sql.ts'

/**
 * What the driver does to tasks and their run log. As with leases, the rules stand between a read and a write, and
 * the IMMEDIATE transaction around both makes them one atomic step.
 */
export interface TaskStatements {
  /** In: namespace, task. Out: all columns but the namespace. */
  readonly find: string
  /** In: namespace. Out: as `find`, by name. */
  readonly all: string
  /** In: all columns. */
  readonly save: string
  /** In: namespace, task, slot, attempt. Out: all columns but the namespace. */
  readonly findRun: string
  /** In: namespace, task, slot. Out: the greatest attempt, or null. */
  readonly lastAttempt: string
  /** In: all columns. */
  readonly addRun: string
  /** In: state, reason (null: as it was), error, ended_at, lapsed_at; namespace, task, slot, attempt. */
  readonly endRun: string
  /** In: late; namespace, task, slot, attempt. */
  readonly lateRun: string
  /** In: namespace, task, first slot, slot after the last, limit. Out: as `findRun`, the latest first. */
  readonly log: string
  /** In: namespace, ended until, limit. */
  readonly purge: string
}

export function taskStatements({ task, run }: SqliteTables): TaskStatements {
  const columns = `task, mark, fingerprint, former, generation, definition, registered_at, attended_until, paused_by,
        run_slot, run_attempt, run_token, run_fence, run_holder, run_expires_at, run_stop, orders, requests`
  const runColumns = `task, slot, attempt, state, reason, after, gap, fence, holder, started_at, ended_at, error, late`
  const readColumns = runColumns.replace('ended_at', 'coalesce(lapsed_at, ended_at) as ended_at')
  const oneRun = 'where namespace = ? and task = ? and slot = ? and attempt = ?'
  return {
    find: `select ${columns} from ${task} where namespace = ? and task = ?`,
    all: `select ${columns} from ${task} where namespace = ? order by task`,
    save: `
      insert or replace into ${task} (namespace, ${columns})
      values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    findRun: `select ${readColumns} from ${run} ${oneRun}`,
    lastAttempt: `select max(attempt) as attempt from ${run} where namespace = ? and task = ? and slot = ?`,
    addRun: `
      insert or replace into ${run} (namespace, ${runColumns}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    endRun: `update ${run} set state = ?, reason = coalesce(?, reason), error = ?, ended_at = ?, lapsed_at = ? ${oneRun}`,
    lateRun: `update ${run} set late = ? ${oneRun}`,
    log: `
      select ${readColumns} from ${run}
       where namespace = ? and task = ? and slot >= ? and slot < ? order by slot desc, attempt desc limit ?`,
    purge: `
      delete from ${run} where (namespace, task, slot, attempt) in (
        select namespace, task, slot, attempt from ${run}
         where namespace = ? and ended_at <= ? order by ended_at limit ?)`,
  }
}
