import { durably, type LockedRows, millis, millisUntil, moment, unlessLocked } from './expressions.sql.ts'
import type { TableNames } from './schema.sql.ts'

/*
 * The statements of TaskDriver, made like those of LockDriver: see there. Claiming has a file of its own.
 *
 * The log rows of a task are written only by a statement that has locked the task's record, but for the late outcome of
 * a run that was lost and the deletion of old rows, which nothing else depends on.
 */

/** The columns of a row of the log as it is added. */
export const loggedColumns =
  'namespace, task, slot, attempt, state, reason, follows, gap, fence, holder, started_at, ended_at'

/** A record that was lost and made again under a clock that went back meets rows of its former life. */
export const overwriteLogged = `on conflict (namespace, task, slot, attempt) do update
    set state = excluded.state, reason = excluded.reason, follows = excluded.follows, gap = excluded.gap,
        fence = excluded.fence, holder = excluded.holder, started_at = excluded.started_at,
        ended_at = excluded.ended_at, lapsed_at = null, error = null, late = null`

/** TaskState of the record `l` at the moment of `t`, as elements of a JSON array. */
export const stateColumns: string = `t.ms, l.mark, l.generation, l.paused_by is not null, l.run_slot, l.run_attempt,
         l.fence, ${millisUntil('l.run_expires_at')}, l.run_holder, l.orders`

const nth = 'row_number() over (partition by u.task order by u.ord) as nth'

/** Counts the namespace's control version up by the number of rows in a CTE, and says so to all who listen. */
function raiseVersion(namespaces: string, changes: string, channel: string): string {
  return `raised as (
  insert into ${namespaces} as v (namespace, version)
  select $1, count(*) from ${changes} having count(*) > 0
  on conflict (namespace) do update set version = v.version + excluded.version
  returning v.version),
told as materialized (select count(pg_notify(${channel}, 'c' || version)) from raised)`
}

/**
 * Input: $1 namespace, one array for each of $2 task, $3 fingerprint, $4 definition, $5 starting, $6 attendMs,
 * $7 since; $8 channel.
 * Output: [[outcome, …state], …].
 *
 * Only a record that is to change is locked. The control version comes last: it is one row for all.
 */
export function registerSql({ tasks, runs, namespaces }: TableNames, lockedRows: LockedRows): string {
  const isRaised = `l.fingerprint <> r.fingerprint and (
           (r.starting and not r.fingerprint = any(l.former_fingerprints)) or l.attended_until <= (select now from t))`
  const isStale = `l.fingerprint = r.fingerprint and (
           l.attended_until - (select now from t) <= r.attend / 2 or (r.starting and l.definition <> r.definition))`
  return `with r as materialized (
  select u.ord, u.task collate "C" as task, u.fingerprint, u.definition, u.starting,
         u.attend * interval '1 ms' as attend, u.since, ${nth}
    from unnest($2::text::text[], $3::text::text[], $4::text::text[], $5::text::bool[], $6::text::float8[],
                $7::text::bigint[])
         with ordinality u(task, fingerprint, definition, starting, attend, since, ord)),
${moment},
v as materialized (
  select $1 as namespace, r.*, s.record, s.is_known is null as is_unknown, s.is_raised or s.is_stale as may_change,
         a.is_raised, a.is_locked, a.mark
    from (select * from r where nth = 1 order by task) r
         left join lateral (
      select l.mark, ${isRaised} as is_raised, true as is_locked from ${tasks} l
       where l.namespace = $1 and l.task = r.task and (${isRaised} or ${isStale})
         for no key update ${unlessLocked(lockedRows)}) a on true
         left join lateral (
      select l as record, true as is_known, ${isRaised} as is_raised, ${isStale} as is_stale from ${tasks} l
       where l.namespace = $1 and l.task = r.task limit 1) s on true),
ins as (
  insert into ${tasks} as l (namespace, task, mark, fingerprint, definition, registered_at, attended_until)
  select $1, v.task, least(v.since, t.ms), v.fingerprint, v.definition, t.now, t.now + v.attend
    from v cross join t
   where v.is_unknown and (select count(*) from v) >= 0 order by v.task
  on conflict (namespace, task) do nothing
  returning l.task, l.mark, l as record),
upd as (
  update ${tasks} l
     set mark = case when v.is_raised then greatest(l.mark, least(v.since, t.ms)) else l.mark end,
         fingerprint = v.fingerprint,
         former_fingerprints = case when v.is_raised then (
             select coalesce(array_agg(f.fingerprint order by f.ord), '{}') from (
               select * from unnest(array_append(array_remove(l.former_fingerprints, v.fingerprint), l.fingerprint))
                        with ordinality f(fingerprint, ord)
                order by f.ord desc limit 8) f)
           else l.former_fingerprints end,
         generation = case when v.is_raised then l.generation + 1 else l.generation end,
         definition = case when v.is_raised or v.starting then v.definition else l.definition end,
         attended_until = greatest(l.attended_until, t.now + v.attend)
    from v cross join t
   where (l.namespace, l.task) = (v.namespace, v.task) and v.is_locked and (select count(*) from ins) >= 0
  returning l.task, l.mark, l as record),
logged as (
  insert into ${runs} (${loggedColumns})
  select $1, ins.task, ins.mark, 0, 'registered', null::text, ins.mark, '', null::bigint, null::text, t.now, t.now
    from ins cross join t
   union all
  select $1, upd.task, upd.mark, 0, 'missed', 'edited', v.mark, 'edited', null, null, t.now, t.now
    from upd join v on v.task = upd.task cross join t where v.is_raised and upd.mark > v.mark
  ${overwriteLogged}
  returning task),
changes as materialized (
  select upd.task from upd join v on v.task = upd.task
   where v.is_raised and (select count(*) from logged) >= 0),
${raiseVersion(namespaces, 'changes', '$8')},
c as materialized (select set_config('synchronous_commit', ${durably}, true) from told)
select json_agg(
  case when v.task is null or (v.may_change and upd.task is null) or (v.is_unknown and ins.task is null) then
         json_build_array('busy')
       else json_build_array(
         case when ins.task is not null then 'created'
              when v.is_raised then 'raised'
              when l.fingerprint = v.fingerprint then 'current'
              else 'superseded' end,
         ${stateColumns}) end order by r.ord)::text as answer
  from c cross join t cross join r
       left join v on v.task = r.task and r.nth = 1
       left join upd on upd.task = v.task
       left join ins on ins.task = v.task
       left join lateral (select (coalesce(upd.record, ins.record, v.record)).*) l on true`
}

/**
 * Input: $1 namespace, $2 tasks, $3 tokens, $4 ttls (ms).
 * Output: [[outcome, remainingMs, stop], …].
 */
export function refreshRunSql({ tasks }: TableNames, lockedRows: LockedRows): string {
  return `with r as materialized (
  select u.ord, u.task collate "C" as task, u.token, u.ttl * interval '1 ms' as ttl,
         row_number() over (partition by u.task, u.token order by u.ord) as nth
    from unnest($2::text::text[], $3::text::text[], $4::text::float8[]) with ordinality u(task, token, ttl, ord)),
mine as materialized (
  select $1 as namespace, r.task, r.token, r.ttl, l.run_expires_at
    from (select * from r where nth = 1 order by task) r cross join lateral (
      select l.run_expires_at from ${tasks} l
       where l.namespace = $1 and l.task = r.task and l.run_token = r.token
         for no key update ${unlessLocked(lockedRows)}) l),
upd as (
  update ${tasks} l set run_expires_at = greatest(l.run_expires_at, clock_timestamp() + m.ttl)
    from mine m
   where (l.namespace, l.task) = (m.namespace, m.task) and (select count(*) from mine) >= 0
     and m.run_expires_at > clock_timestamp()
  returning l.task, l.run_token, l.run_expires_at, l.run_stop),
c as materialized (select set_config('synchronous_commit', ${durably}, true) from (select count(*) from upd) u)
select json_agg(
  case when u.task is not null then json_build_array('held', ${millisUntil('u.run_expires_at')}, u.run_stop)
       when m.task is null and l.run_token = r.token then json_build_array('busy')
       else json_build_array('lost') end order by r.ord)::text as answer
  from c cross join r
       left join upd u on u.task = r.task and u.run_token = r.token
       left join mine m on m.task = r.task and m.token = r.token
       left join lateral (
         select l.run_token from ${tasks} l where l.namespace = $1 and l.task = r.task limit 1) l on true`
}

/**
 * Input: $1 namespace, one array for each of $2 task, $3 slot, $4 attempt, $5 fence, $6 outcome, $7 reason, $8 error.
 * Output: [[outcome, now], …].
 *
 * The expiry is not compared: a run that was not taken over is done, however late. A run that is no longer the task's
 * keeps its row as it is, and the row says what it reported too late.
 */
export function completeSql({ tasks, runs }: TableNames, lockedRows: LockedRows): string {
  const isTheRun = `l.run_token is not null and l.run_slot = r.slot and l.run_attempt = r.attempt and l.fence = r.fence`
  return `with r as materialized (
  select u.*, ${nth}
    from (select ord, task collate "C" as task, slot, attempt, fence, outcome, reason, error
            from unnest($2::text::text[], $3::text::bigint[], $4::text::bigint[], $5::text::bigint[], $6::text::text[],
                        $7::text::text[], $8::text::text[])
                 with ordinality u(task, slot, attempt, fence, outcome, reason, error, ord)) u),
${moment},
v as materialized (
  select $1 as namespace, r.*, a.is_locked, s.is_running, g.ctid as row_id, g.state, g.fence as logged_fence
    from (select * from r where nth = 1 order by task) r
         left join lateral (
      select true as is_locked from ${tasks} l
       where l.namespace = $1 and l.task = r.task and ${isTheRun}
         for no key update ${unlessLocked(lockedRows)}) a on true
         left join lateral (
      select ${isTheRun} as is_running from ${tasks} l
       where l.namespace = $1 and l.task = r.task limit 1) s on true
         left join lateral (
      select g.ctid, g.state, g.fence from ${runs} g
       where g.namespace = $1 and g.task = r.task and g.slot = r.slot and g.attempt = r.attempt limit 1) g on true),
upd as (
  update ${tasks} l
     set run_slot = null, run_attempt = null, run_token = null, run_holder = null, run_expires_at = null,
         run_stop = null
    from v
   where (l.namespace, l.task) = (v.namespace, v.task) and v.is_locked and (select count(*) from v) >= 0
  returning l.task),
ended as (
  update ${runs} g set state = v.outcome, reason = coalesce(v.reason, g.reason), error = v.error, ended_at = t.now
    from v join upd on upd.task = v.task cross join t
   where g.ctid = v.row_id),
o as materialized (
  select v.*, case when v.is_locked then 'completed'
                   when v.is_running then 'busy'
                   when v.state is null or v.logged_fence is distinct from v.fence then 'unknown'
                   when v.state in ('lost', 'running') then 'late'
                   else 'completed' end as answer
    from v),
late as (
  update ${runs} g set late = o.outcome
    from o
   where o.answer = 'late' and g.ctid = o.row_id
     and g.late is distinct from o.outcome),
c as materialized (select set_config('synchronous_commit', ${durably}, true) from (select count(*) from upd) u)
select json_agg(json_build_array(
         case when o.answer is null then 'busy' when o.answer = 'unknown' then 'late' else o.answer end, t.ms)
         order by r.ord)::text as answer
  from c cross join t cross join r left join o on o.task = r.task and r.nth = 1`
}

/**
 * Input: $1 namespace, $2 task, $3 kind, $4 request id, $5 by, $6 fence or '', $7 channel, $8 and $9 orders
 * before and after.
 * Output: [outcome, version].
 */
export function controlSql({ tasks, namespaces }: TableNames, lockedRows: LockedRows): string {
  return `with mine as materialized (
  select l.task, $4 = any(l.control_requests) as is_repeated,
         $3 = 'order' and l.orders <> $8 as is_changed,
         $3 <> 'cancel' or (l.run_token is not null and l.run_expires_at > clock_timestamp()
                            and ($6 = '' or l.fence = nullif($6, '')::bigint)) as applies
    from ${tasks} l where l.namespace = $1 and l.task = $2
     for no key update ${unlessLocked(lockedRows)}),
upd as (
  update ${tasks} l
     set paused_by = case $3 when 'pause' then $5 when 'resume' then null else l.paused_by end,
         run_stop = case $3 when 'cancel' then $5 else l.run_stop end,
         orders = case $3 when 'order' then $9 else l.orders end,
         control_requests = l.control_requests[greatest(1, cardinality(l.control_requests) - 14):] || $4::text
    from mine m
   where l.namespace = $1 and l.task = $2 and m.applies and not m.is_repeated and not m.is_changed
  returning l.task),
${raiseVersion(namespaces, 'upd', '$7')},
c as materialized (select set_config('synchronous_commit', ${durably}, true) from told)
select case when raised.version is not null then json_build_array('applied', raised.version)
            when m.is_repeated then json_build_array('repeated', coalesce(v.version, 0))
            when m.is_changed then json_build_array('changed')
            when m.task is not null then json_build_array('idle')
            when l.task is not null then json_build_array('busy')
            else json_build_array('unregistered') end::text as answer
  from c left join mine m on true
       left join raised on true
       left join ${tasks} l on l.namespace = $1 and l.task = $2
       left join ${namespaces} v on v.namespace = $1`
}

/** Input: $1 namespace. Output: [version, now]. */
export function pollSql({ namespaces }: TableNames): string {
  return `select json_build_array(
  coalesce((select v.version from ${namespaces} v where v.namespace = $1), 0), ${millis('clock_timestamp()')})::text as answer`
}

/** A task's record `l` as a JSON array: its own columns, then those of its state. */
const record = `json_build_array(l.task, l.fingerprint, l.definition, ${millis('l.registered_at')},
         ${millis('l.attended_until')}, l.paused_by, l.run_stop, ${stateColumns})`

/** Input: $1 namespace, $2 tasks. Output: [record or null, …]. */
export function inspectSql({ tasks }: TableNames): string {
  return `with ${moment}
select json_agg(l.record order by r.ord)::text as answer
  from t cross join unnest($2::text::text[]) with ordinality r(task, ord)
       left join lateral (
         select ${record} as record from ${tasks} l where l.namespace = $1 and l.task = r.task limit 1) l on true`
}

/** Input: $1 namespace. Output: [record, …] by name. */
export function inspectAllSql({ tasks }: TableNames): string {
  return `with ${moment}
select coalesce(json_agg(${record} order by l.task), '[]')::text as answer
  from t cross join ${tasks} l where l.namespace = $1`
}

/**
 * Input: $1 namespace, $2 task, $3 from or '', $4 to or '', $5 limit. Output: [row, …], the latest first.
 *
 * The rows are taken in the order of the whole primary key, beyond the task if need be, so that no plan can collect all
 * of a task's and sort them.
 */
export function logSql({ runs }: TableNames): string {
  return `with page as materialized (
  select * from ${runs} g
   where (g.namespace, g.task, g.slot) < ($1, $2, coalesce(nullif($4, '')::bigint, 9223372036854775807))
   order by g.namespace desc, g.task desc, g.slot desc, g.attempt desc limit $5::text::bigint)
select coalesce(json_agg(json_build_object(
         'task', g.task, 'slot', g.slot, 'attempt', g.attempt, 'state', g.state, 'reason', g.reason,
         'after', g.follows, 'gap', g.gap, 'fence', g.fence, 'holder', g.holder,
         'startedAt', ${millis('g.started_at')}, 'endedAt', ${millis('coalesce(g.lapsed_at, g.ended_at)')},
         'error', g.error, 'late', g.late) order by g.slot desc, g.attempt desc), '[]')::text as answer
  from page g
 where g.namespace = $1 and g.task = $2
   and g.slot >= coalesce(nullif($3, '')::bigint, -9223372036854775808)`
}

/**
 * Input: $1 namespace, $2 how long ago a row must have ended (ms), $3 the most to delete, $4 the most to look at,
 * $5, $6, $7 task, slot and attempt after which to begin.
 * Output: [deleted, task, slot, attempt], the last row looked at, or '' for the task at the end.
 *
 * Walks along the primary key, row by row, and from the first young slot of a task to the next task: no row ends before
 * its slot, so what lies between need not be looked at, however much it is. An index on the time of the end would be
 * written with every run, and would tempt the planner to look a run up by its namespace alone. That an old row is not the
 * first of the walk, and was found, goes without saying: it is said so that the planner expects few of them, and does not
 * read the table from end to end to match them with it.
 */
export function purgeRunsSql({ runs }: TableNames): string {
  return `with recursive ${moment},
walk as (
  select $5::text collate "C" as task, $6::text::bigint as slot, $7::text::integer as attempt, false as is_old,
         $6::text::bigint as beyond, 0 as steps, 0 as found
   union all
  select g.task, g.slot, g.attempt, g.is_old, g.beyond, w.steps + 1, w.found + g.is_old::integer
    from walk w cross join t cross join lateral (
      select g.namespace, g.task, g.slot, g.attempt,
             coalesce(g.ended_at <= t.now - $2::text::float8 * interval '1 ms', false) as is_old,
             case when g.slot > floor(t.ms - $2::text::float8)::bigint then 9223372036854775807 else g.slot end as beyond
        from ${runs} g
       where (g.namespace, g.task, g.slot, g.attempt) > ($1, w.task, w.beyond, w.attempt)
       order by g.namespace, g.task, g.slot, g.attempt limit 1) g
   where g.namespace = $1 and w.found < $3::text::bigint and w.steps < $4::text::bigint),
mine as materialized (
  select g.row_id from (select * from walk where is_old and steps > 0 and found > 0 order by steps) w cross join lateral (
    select g.ctid as row_id from ${runs} g
     where g.namespace = $1 and g.task = w.task and g.slot = w.slot and g.attempt = w.attempt
       for update skip locked) g),
del as (
  delete from ${runs} g using mine m where g.ctid = m.row_id returning 1),
last as (
  select task, slot, attempt from walk
   where found >= $3::text::bigint or steps >= $4::text::bigint order by steps desc limit 1)
select json_build_array((select count(*) from del), coalesce(l.task, ''), coalesce(l.slot, 0),
                        coalesce(l.attempt, 0))::text as answer
  from (select) one left join last l on true`
}
