import {
  clockMicros,
  durably,
  greatestFence,
  type LockedRows,
  moment,
  unlessLocked,
} from './expressions.sql.ts'
import type { TableNames } from './schema.sql.ts'
import { loggedColumns, overwriteLogged, stateColumns } from './tasks.sql.ts'

/**
 * Input: $1 namespace, then one array for each: $2 task, $3 slot, $4 after, $5 gap, $6 fingerprint, $7 definition,
 * $8 attendMs, $9 token, $10 ttlMs, $11 holder, $12 overlap, $13 onCrash, $14 maxAttempts, $15 decide, $16 reason,
 * $17 and $18 the orders of a manual run before and after, null for a slot of the schedule.
 * Output: [[outcome, reason, …state], …].
 *
 * One statement, so one transaction. `v` is each task's record: locked, in its latest version, if the claim may change
 * it; as it was when the statement began, if the claim cannot, which is how a crowd of late nodes learns that a slot is
 * decided without standing in line. `d` applies the rules of TaskDriver.claim in their order, and the rest writes down
 * what follows: record, log, and the new record of an unknown task.
 *
 * A record that may get a new token is locked FOR UPDATE, which excludes a transaction that has locked it FOR KEY SHARE
 * to guard the commit of the run before. A record with a run alive gets none, and the weaker lock leaves the guard alone.
 */
export function claimSql({ tasks, runs }: TableNames, lockedRows: LockedRows): string {
  const mayChange = `l.fingerprint = r.fingerprint and (
           (l.run_token is not null and (l.run_expires_at <= (select now from t)) <> (l.run_token = r.token))
           or (r.orders_before = l.orders and r.slot <= (select ms from t) and (l.run_token is null or r.decide = 'miss'))
           or (r.orders_before is null and r.slot <= (select ms from t) and r.slot > l.mark and r.after = l.mark
               and not (l.run_token is not null and (r.overlap = 'queue' or l.run_token = r.token)
                        and r.decide = 'run' and l.paused_by is null)))`
  const isAlive = '(l.run_token is not null and l.run_expires_at > (select now from t))'
  return `with r as materialized (
  select u.*, row_number() over (partition by u.task order by u.ord) as nth
    from (select ord, task collate "C" as task, slot, after, gap, fingerprint, definition,
                 attend * interval '1 ms' as attend, token, ttl * interval '1 ms' as ttl, holder, overlap, on_crash,
                 max_attempts, decide, reason, orders_before, orders_after
            from unnest($2::text::text[], $3::text::bigint[], $4::text::bigint[], $5::text::text[], $6::text::text[],
                        $7::text::text[], $8::text::float8[], $9::text::text[], $10::text::float8[],
                        $11::text::text[], $12::text::text[], $13::text::text[], $14::text::float8[],
                        $15::text::text[], $16::text::text[], $17::text::text[], $18::text::text[])
                 with ordinality u(task, slot, after, gap, fingerprint, definition, attend, token, ttl, holder,
                                   overlap, on_crash, max_attempts, decide, reason, orders_before, orders_after,
                                   ord)) u),
${moment},
v as materialized (
  select $1 as namespace, r.*, coalesce(a.record, b.record, s.record) as record,
         coalesce(a.is_locked, b.is_locked, false) as is_locked,
         coalesce(s.may_change, false) as may_change, s.is_known is null as is_unknown
    from (select * from r where nth = 1 order by task) r
         left join lateral (
      select l as record, true as is_locked from ${tasks} l
       where l.namespace = $1 and l.task = r.task and not ${isAlive} and ${mayChange}
         for update ${unlessLocked(lockedRows)}) a on true
         left join lateral (
      select l as record, true as is_locked from ${tasks} l
       where l.namespace = $1 and l.task = r.task and ${isAlive} and ${mayChange}
         for no key update ${unlessLocked(lockedRows)}) b on true
         left join lateral (
      select l as record, true as is_known, ${mayChange} as may_change from ${tasks} l
       where l.namespace = $1 and l.task = r.task limit 1) s on true),
x as materialized (
  select v.*, (v.record).mark, (v.record).run_slot, (v.record).run_attempt, (v.record).fence as last_fence,
         (v.record).orders,
         (v.record).paused_by is not null as paused,
         (v.record).run_token is not null and (v.record).run_expires_at > t.now as is_alive,
         (v.record).run_token is not null and (v.record).run_expires_at <= t.now as is_lapsed,
         (v.record).run_token is not null and (v.record).run_token = v.token as is_own, (v.record).run_stop,
         v.on_crash = 'retry' and (v.record).run_attempt < v.max_attempts and (v.record).run_stop is null as is_retried
    from v cross join t),
d as materialized (
  select x.*, x.is_lapsed and not x.is_own and not x.is_retried as is_given_up,
         case when x.is_unknown then 'unknown'
              when x.may_change and not x.is_locked then 'busy'
              when (x.record).fingerprint <> x.fingerprint then 'superseded'
              when x.is_alive and x.is_own then 'rearmed'
              when x.is_lapsed and not x.is_own and x.is_retried and not x.paused then 'takeover'
              when x.orders_before <> x.orders then 'behind'
              when x.slot > t.ms then 'early'
              when x.orders_before is not null then
                case when x.decide = 'miss' then 'dropped'
                     when x.is_alive or x.is_lapsed and (x.is_own or x.is_retried) then 'held'
                     else 'ordered' end
              when x.slot <= x.mark then 'decided'
              when x.after <> x.mark then 'behind'
              when x.paused then 'paused'
              when x.decide = 'miss' then 'missed'
              when x.is_lapsed and x.is_own then 'held'
              when not x.is_alive then 'granted'
              when x.overlap = 'skip' then 'overlap'
              else 'held' end as decision
    from x cross join t),
n as materialized (
  select d.*, case when d.decision in ('granted', 'takeover', 'ordered') and d.last_fence >= ${greatestFence} then 'overflow'
                   else d.decision end as outcome
    from d),
ins as (
  insert into ${tasks} as l (namespace, task, mark, fingerprint, definition, registered_at, attended_until)
  select $1, n.task, t.ms, n.fingerprint, n.definition, t.now, t.now + n.attend
    from n cross join t
   where n.outcome = 'unknown' and (select count(*) from n) >= 0 order by n.task
  on conflict (namespace, task) do nothing
  returning l.task, l.mark, l as record),
upd as (
  update ${tasks} l
     set mark = case when n.outcome in ('granted', 'paused', 'missed', 'overlap') then n.slot else l.mark end,
         orders = case when n.outcome in ('ordered', 'dropped') then n.orders_after else l.orders end,
         fence = case when n.outcome in ('granted', 'takeover', 'ordered') then greatest(l.fence + 1, ${clockMicros})
                      else l.fence end,
         run_slot = case when n.outcome in ('granted', 'ordered') then n.slot
                         when n.is_given_up then null else l.run_slot end,
         run_attempt = case n.outcome when 'granted' then 1 when 'takeover' then l.run_attempt + 1
                       when 'ordered' then 1 + coalesce((
                         select max(g.attempt) from ${runs} g
                          where g.namespace = $1 and g.task = n.task and g.slot = n.slot), 0)
                       else case when n.is_given_up then null else l.run_attempt end end,
         run_token = case when n.outcome in ('granted', 'takeover', 'ordered') then n.token
                          when n.is_given_up then null else l.run_token end,
         run_holder = case when n.outcome in ('granted', 'takeover', 'ordered') then n.holder
                           when n.is_given_up then null else l.run_holder end,
         run_expires_at = case when n.outcome in ('granted', 'takeover', 'ordered') then clock_timestamp() + n.ttl
                               when n.outcome = 'rearmed' then greatest(l.run_expires_at, clock_timestamp() + n.ttl)
                               when n.is_given_up then null else l.run_expires_at end,
         run_stop = case when n.outcome in ('granted', 'takeover', 'ordered') or n.is_given_up then null else l.run_stop end
    from n
   where (l.namespace, l.task) = (n.namespace, n.task) and n.is_locked and n.outcome <> 'overflow'
     and (select count(*) from ins) >= 0
     and (n.is_given_up or n.outcome in ('granted', 'takeover', 'ordered', 'rearmed', 'paused', 'missed', 'overlap',
                                         'dropped'))
  returning l.task, l.run_slot, l.run_attempt, l.fence, l as record),
over as materialized (
  select (select g.ctid from ${runs} g
           where g.namespace = $1 and g.task = n.task and g.slot = n.run_slot and g.attempt = n.run_attempt) as row_id,
         n.run_stop, (n.record).run_expires_at as lapsed_at
    from n join upd on upd.task = n.task where n.is_given_up or n.outcome = 'takeover'),
lost as (
  update ${runs} g
     set state = 'lost', reason = case when over.run_stop is not null then 'cancelled' else g.reason end, error = over.run_stop,
         ended_at = t.now, lapsed_at = over.lapsed_at
    from over cross join t where g.ctid = over.row_id),
logged as (
  insert into ${runs} (${loggedColumns})
  select $1, n.task, n.slot, upd.run_attempt, 'running', null::text, n.mark, n.gap, upd.fence, n.holder, t.now,
         null::timestamptz
    from n join upd on upd.task = n.task cross join t where n.outcome = 'granted'
   union all
  select $1, n.task, upd.run_slot, upd.run_attempt, 'running', null::text, upd.run_slot, '', upd.fence, n.holder, t.now,
         null::timestamptz
    from n join upd on upd.task = n.task cross join t where n.outcome = 'takeover'
   union all
  select $1, n.task, n.slot, upd.run_attempt, 'running', n.reason, n.slot, n.gap, upd.fence, n.holder, t.now, null
    from n join upd on upd.task = n.task cross join t where n.outcome = 'ordered'
   union all
  select $1, n.task, n.slot, 0, case n.outcome when 'missed' then 'missed' else 'skipped' end,
         case n.outcome when 'missed' then n.reason else n.outcome end, n.mark, n.gap, null::bigint, n.holder,
         t.now, t.now
    from n join upd on upd.task = n.task cross join t where n.outcome in ('paused', 'missed', 'overlap')
   union all
  select $1, ins.task, ins.mark, 0, 'registered', null::text, ins.mark, '', null::bigint, null::text, t.now, t.now
    from ins cross join t
  ${overwriteLogged}),
c as materialized (select set_config('synchronous_commit', ${durably}, true) from (select count(*) from upd) u)
select json_agg(
  case when n.task is null or n.outcome = 'busy' or (n.outcome = 'unknown' and ins.task is null) then
         json_build_array('busy')
       when n.outcome = 'overflow' then json_build_array('overflow', n.last_fence)
       else json_build_array(
         case when n.outcome in ('paused', 'missed', 'overlap', 'dropped') then 'skipped'
              when n.outcome = 'ordered' then 'granted'
              when n.outcome = 'unknown' then 'unregistered'
              when n.outcome = 'rearmed' then case when l.run_attempt > 1 then 'takeover' else 'granted' end
              else n.outcome end,
         case when n.outcome in ('missed', 'dropped') then n.reason else n.outcome end,
         ${stateColumns}) end order by r.ord)::text as answer
  from c cross join t cross join r
       left join n on n.task = r.task and r.nth = 1
       left join upd on upd.task = n.task
       left join ins on ins.task = n.task
       left join lateral (select (coalesce(upd.record, ins.record, n.record)).*) l on true`
}
