import {
  clockMicros,
  durably,
  greatestFence,
  type LockedRows,
  millis,
  millisUntil,
  unlessLocked,
} from './expressions.sql.ts'
import type { TableNames } from './schema.sql.ts'

/*
 * The statements of LockDriver. Parameters are texts: $1 is the namespace, arrays come as array literals, one element
 * an item. Each answers one JSON text, so that no client's type parsers, row shapes or column naming matter.
 *
 * Each batch is one statement and so one transaction. It has three parts: `r`, the requests; a CTE that locks the rows
 * it may change, one by one in the order of their keys; and the changes, made to locked rows only. A row that somebody
 * else has locked is skipped, and told from a lost or a held one by a look at it without a lock.
 *
 * No two statements wait for each other, even where they wait for locked rows, because none changes a row before it has
 * all its locks: that is what a `count(*)` of an earlier part is there for. An insert waits for whoever is inserting or
 * changing its key, so inserts come after the locks, in the order of keys, and before the updates.
 *
 * Nothing here may scan a table, whatever the planner believes of it: that it is empty, as when a plan is kept from
 * then, or that a namespace has few rows. So a look-up by key sits in a LATERAL subquery that cannot be flattened, an
 * update takes both columns of the primary key from the locked rows, so that no index search by the namespace alone is
 * on offer, and `nth = 1` (rather than a boolean) makes those rows seem few.
 */

/**
 * Input: $1 namespace, $2 keys, $3 tokens, $4 ttls, $5 holders, $6 waiting times (ms).
 * Output: [[outcome, fence, remainingMs, holder], …].
 *
 * A key that is free, expired or ours is locked FOR UPDATE, which waits for nobody's renewal and excludes a
 * transaction that has locked the row FOR KEY SHARE to guard its commit. Renewals never compete: a row that somebody
 * holds is not locked, but for the moment in which a waiter leaves its mark.
 *
 * A waiter's mark reaches half as far again as asked for, so that the next waiter needs none. The answer is `held` only
 * if the row says that somebody waits, in the version that this statement saw or made: the release that ends this
 * lease commits later and reads it.
 *
 * Without a grant, a waiter's mark is all that can be lost in a crash, so that the commit need not wait for the disk.
 */
export function acquireSql({ leases }: TableNames, lockedRows: LockedRows): string {
  return `with r as materialized (
  select u.ord, u.key collate "C" as key, u.token, u.ttl * interval '1 ms' as ttl, u.holder,
         u.waiting * interval '1 ms' as waiting, row_number() over (partition by u.key order by u.ord) as nth
    from unnest($2::text::text[], $3::text::text[], $4::text::float8[], $5::text::text[], $6::text::float8[])
         with ordinality u(key, token, ttl, holder, waiting, ord)),
t as materialized (select clock_timestamp() as now),
mine as materialized (
  select $1 as namespace, r.key, r.token, r.ttl, r.holder, l.again
    from (select * from r where nth = 1 order by key) r cross join lateral (
      select l.token = r.token and l.expires_at > (select now from t) as again from ${leases} l
       where l.namespace = $1 and l.key = r.key and l.released_token is distinct from r.token
         and l.fence < ${greatestFence}
         and (l.token is null or l.expires_at <= (select now from t) or (l.token = r.token and not l.revoked))
         for update ${unlessLocked(lockedRows)}) l),
ins as (
  insert into ${leases} (namespace, key, token, fence, holder, acquired_at, expires_at)
  select $1, r.key, r.token, ${clockMicros}, r.holder, clock_timestamp(), clock_timestamp() + r.ttl
    from r
   where nth = 1 and (select count(*) from mine) >= 0
     and (select l.fence from ${leases} l where l.namespace = $1 and l.key = r.key) is null
   order by r.key
  on conflict (namespace, key) do nothing
  returning key, fence, expires_at),
upd as (
  update ${leases} l
     set token = m.token, holder = m.holder, revoked = false,
         fence = case when m.again then l.fence else greatest(l.fence + 1, ${clockMicros}) end,
         acquired_at = case when m.again then l.acquired_at else clock_timestamp() end,
         expires_at = greatest(case when m.again then l.expires_at end, clock_timestamp() + m.ttl)
    from mine m
   where (l.namespace, l.key) = (m.namespace, m.key) and (select count(*) from ins) >= 0
  returning l.key, l.fence, l.expires_at),
g as materialized (select * from upd union all select * from ins),
w as materialized (
  select $1 as namespace, r.key, r.waiting
    from (select * from r where nth = 1 and waiting > interval '0' and (select count(*) from g) >= 0 order by key) r
         cross join lateral (
      select from ${leases} l
       where l.namespace = $1 and l.key = r.key and l.token is not null and l.expires_at > (select now from t)
         and (l.token <> r.token or l.revoked) and l.released_token is distinct from r.token
         and l.waiting_until < (select now from t) + r.waiting
         for no key update skip locked) l),
wait as (
  update ${leases} l set waiting_until = greatest(l.waiting_until, clock_timestamp() + w.waiting * 1.5)
    from w
   where (l.namespace, l.key) = (w.namespace, w.key)
  returning l.key),
c as materialized (
  select set_config('synchronous_commit', case when exists (select from g) then ${durably} else 'off' end, true))
select json_agg(
  case when g.key is not null then
         json_build_array('granted', g.fence, ${millisUntil('g.expires_at')})
       when l.released_token = r.token then json_build_array('spent')
       when l.fence >= ${greatestFence} then json_build_array('overflow', l.fence)
       when l.token is not null and l.expires_at > t.now and (l.token <> r.token or l.revoked)
            and (l.waiting_until >= t.now + r.waiting or r.waiting = interval '0' or wait.key is not null) then
         json_build_array('held', l.fence, ${millisUntil('l.expires_at', 't.now')}, l.holder)
       else json_build_array('busy') end order by r.ord)::text as answer
  from c cross join t cross join r
       left join g on g.key = r.key and r.nth = 1
       left join wait on wait.key = r.key and r.nth = 1
       left join lateral (select * from ${leases} l where l.namespace = $1 and l.key = r.key limit 1) l on true`
}

/**
 * Input: $1 namespace, $2 keys, $3 tokens, $4 ttls (ms).
 * Output: [[outcome, remainingMs], …].
 *
 * The row is locked by its token alone and its expiry looked at afterwards, since waiting for a lock takes time that
 * counts. The lock leaves the key alone, so that a guard on the row does not stop its own holder's renewal.
 */
export function refreshSql({ leases }: TableNames, lockedRows: LockedRows): string {
  return `with r as materialized (
  select u.ord, u.key collate "C" as key, u.token, u.ttl * interval '1 ms' as ttl,
         row_number() over (partition by u.key, u.token order by u.ord) as nth
    from unnest($2::text::text[], $3::text::text[], $4::text::float8[]) with ordinality u(key, token, ttl, ord)),
mine as materialized (
  select $1 as namespace, r.key, r.token, r.ttl, l.expires_at, l.revoked
    from (select * from r where nth = 1 order by key) r cross join lateral (
      select l.expires_at, l.revoked from ${leases} l
       where l.namespace = $1 and l.key = r.key and l.token = r.token
         for no key update ${unlessLocked(lockedRows)}) l),
upd as (
  update ${leases} l set expires_at = greatest(l.expires_at, clock_timestamp() + m.ttl)
    from mine m
   where (l.namespace, l.key) = (m.namespace, m.key) and (select count(*) from mine) >= 0
     and not m.revoked and m.expires_at > clock_timestamp()
  returning l.key, l.token, l.expires_at),
c as materialized (select set_config('synchronous_commit', ${durably}, true) from (select count(*) from upd) u)
select json_agg(
  case when u.key is not null then json_build_array('held', ${millisUntil('u.expires_at')})
       when m.revoked and m.expires_at > clock_timestamp() then json_build_array('revoked')
       when m.key is null and l.token = r.token then json_build_array('busy')
       else json_build_array('gone') end order by r.ord)::text as answer
  from c cross join r
       left join upd u on u.key = r.key and u.token = r.token
       left join mine m on m.key = r.key and m.token = r.token
       left join lateral (select l.token from ${leases} l where l.namespace = $1 and l.key = r.key limit 1) l on true`
}

/**
 * Input: $1 namespace, $2 keys, $3 tokens, $4 channel.
 * Output: [[outcome], …].
 *
 * Commits asynchronously, in this transaction only: a lost release means waiting for the ttl. It notifies only if the
 * row says that somebody waits, as read under the row's lock.
 */
export function releaseSql({ leases }: TableNames, lockedRows: LockedRows): string {
  return `with r as materialized (
  select u.ord, u.key collate "C" as key, u.token,
         row_number() over (partition by u.key, u.token order by u.ord) as nth
    from unnest($2::text::text[], $3::text::text[]) with ordinality u(key, token, ord)),
mine as materialized (
  select $1 as namespace, r.key, r.token, l.expires_at > clock_timestamp() as held,
         l.waiting_until > clock_timestamp() as awaited
    from (select * from r where nth = 1 order by key) r cross join lateral (
      select l.expires_at, l.waiting_until from ${leases} l
       where l.namespace = $1 and l.key = r.key and l.token = r.token
         for no key update ${unlessLocked(lockedRows)}) l),
upd as (
  update ${leases} l
     set token = null, released_token = m.token, expires_at = least(l.expires_at, clock_timestamp()),
         waiting_until = 'epoch', revoked = false
    from mine m
   where (l.namespace, l.key) = (m.namespace, m.key) and (select count(*) from mine) >= 0
  returning l.key, m.token, m.held, m.awaited),
n as materialized (select count(pg_notify($4, 'r' || key)) from upd where awaited),
c as materialized (select set_config('synchronous_commit', 'off', true) from n)
select json_agg(
  case when u.held then 'released'
       when u.key is not null then 'lost'
       when l.released_token = r.token then 'released'
       when l.token = r.token then 'busy'
       else 'lost' end order by r.ord)::text as answer
  from c cross join r
       left join upd u on u.key = r.key and u.token = r.token
       left join lateral (
         select l.token, l.released_token from ${leases} l where l.namespace = $1 and l.key = r.key limit 1) l on true`
}

/**
 * Input: $1 namespace, $2 key, $3 fence, $4 'true' if at once, $5 channel.
 * Output: [outcome, number].
 */
export function revokeSql({ leases }: TableNames, lockedRows: LockedRows): string {
  return `with mine as materialized (
  select l.key, l.waiting_until > clock_timestamp() as awaited from ${leases} l
   where l.namespace = $1 and l.key = $2 and l.fence = $3::text::bigint
     and l.token is not null and l.expires_at > clock_timestamp()
     for no key update ${unlessLocked(lockedRows)}),
upd as (
  update ${leases} l
     set token = case when $4 = 'true' then null else l.token end,
         released_token = case when $4 = 'true' then l.token else l.released_token end,
         expires_at = case when $4 = 'true' then least(l.expires_at, clock_timestamp()) else l.expires_at end,
         waiting_until = case when $4 = 'true' then 'epoch' else l.waiting_until end,
         revoked = $4 <> 'true'
    from mine m
   where l.namespace = $1 and l.key = $2
  returning l.key, l.expires_at, m.awaited),
n as materialized (select count(pg_notify($5, 'r' || key)) from upd where awaited and $4 = 'true'),
c as materialized (select set_config('synchronous_commit', ${durably}, true) from n)
select case when u.key is not null and $4 = 'true' then json_build_array('released')
            when u.key is not null then json_build_array('revoked', ${millisUntil('u.expires_at')})
            when l.token is null or l.expires_at <= clock_timestamp() then json_build_array('free')
            when l.fence <> $3::text::bigint then json_build_array('changed', l.fence)
            else json_build_array('busy') end::text as answer
  from c left join upd u on true
       left join ${leases} l on l.namespace = $1 and l.key = $2`
}

/** What operators see of the row `l`, as a JSON object; never the token. */
const record = `json_build_object('key', l.key, 'fence', l.fence, 'holder', l.holder,
    'acquiredAt', ${millis('l.acquired_at')}, 'expiresAt', ${millis('l.expires_at')},
    'remainingMs', ${millisUntil('l.expires_at')},
    'awaited', l.waiting_until > clock_timestamp(), 'revoked', l.revoked)`

const isHeld = `l.token is not null and l.expires_at > clock_timestamp()`

/** Input: $1 namespace, $2 keys. Output: [record or null, …]. */
export function peekSql({ leases }: TableNames): string {
  return `select json_agg(l.record order by r.ord)::text as answer
  from unnest($2::text::text[]) with ordinality r(key, ord)
       left join lateral (
         select ${record} as record from ${leases} l
          where l.namespace = $1 and l.key = r.key and ${isHeld} limit 1) l on true`
}

/**
 * Input: $1 namespace, $2 prefix, $3 the most rows to look at, $4 the last key of the page before or '', $5 where to
 * begin: that key, or the prefix.
 * Output: [[record, …], last key or null].
 *
 * The rows looked at are counted, held or not, so that a page costs the same however many are free. They are taken in
 * the order of the whole primary key, beyond the namespace if need be, so that no plan can collect all of a namespace
 * and sort it.
 */
export function scanSql({ leases }: TableNames): string {
  return `with page as materialized (
  select w.*, w.namespace = $1 and starts_with(w.key, $2) as fits
    from (select * from ${leases} l where (l.namespace, l.key) >= ($1, $5)
           order by l.namespace, l.key limit $3::text::bigint) w)
select json_build_array(
  (select coalesce(json_agg(${record} order by l.key), '[]') from page l
    where l.fits and l.key <> $4 and ${isHeld}),
  (select max(key) from page having count(*) >= $3::text::bigint and bool_and(fits)))::text as answer`
}

/**
 * Input: $1 namespace, $2 how long a record must have been free (ms), $3 the most to delete, $4 the most to look at,
 * $5 the key after which to begin.
 * Output: [deleted, the last key looked at, or '' at the end].
 *
 * Walks along the primary key from where the last call stopped. An index on the time of release would cost every
 * renewal its HOT update.
 */
export function purgeSql({ leases }: TableNames): string {
  const old = `(l.token is null or l.expires_at <= clock_timestamp())
         and l.expires_at <= clock_timestamp() - $2::text::float8 * interval '1 ms'
         and l.fence <= ${clockMicros}`
  return `with walk as materialized (
  select l.namespace, l.key, ${old} as old
    from (select * from ${leases} l where (l.namespace, l.key) > ($1, $5)
           order by l.namespace, l.key limit $4::text::bigint) l
   where l.namespace = $1),
chosen as materialized (select namespace, key from walk where old order by key limit $3::text::bigint),
mine as materialized (
  select c.namespace, c.key from chosen c cross join lateral (
    select from ${leases} l
     where l.namespace = $1 and l.key = c.key and ${old}
       for update skip locked) l),
del as (
  delete from ${leases} l using mine m where (l.namespace, l.key) = (m.namespace, m.key) returning l.key)
select json_build_array(
  (select count(*) from del),
  case when (select count(*) from chosen) >= $3::text::bigint then (select max(key) from chosen)
       when (select count(*) from walk) >= $4::text::bigint then (select max(key) from walk)
       else '' end)::text as answer`
}
