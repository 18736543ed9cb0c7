import type { TableNames } from '../../../../src/drivers/postgres/schema.sql.ts'

/**
 * Acquiring as one upsert, which is how it is mostly written. Takes and answers what the driver's own statement does.
 *
 * Wrong, although atomic: it locks the row of a key that it finds held, so that losers stand in the way of renewals; it
 * locks rows and inserts keys in the order of the batch; and it fails as a whole where a key is named twice.
 */
export function upsertSql({ leases }: TableNames): string {
  return `with r as materialized (
  select * from unnest($2::text::text[], $3::text::text[], $4::text::float8[], $5::text::text[], $6::text::float8[])
       with ordinality u(key, token, ttl, holder, waiting, ord)),
g as (
  insert into ${leases} as l (namespace, key, token, fence, holder, acquired_at, expires_at)
  select $1, r.key, r.token, (extract(epoch from clock_timestamp()) * 1000000)::bigint, r.holder, clock_timestamp(),
         clock_timestamp() + r.ttl * interval '1 ms'
    from r
  on conflict (namespace, key) do update
     set token = excluded.token, fence = greatest(l.fence + 1, excluded.fence), holder = excluded.holder,
         acquired_at = excluded.acquired_at, expires_at = excluded.expires_at
   where l.token is null or l.expires_at <= clock_timestamp() or l.token = excluded.token
  returning key, token, fence, extract(epoch from expires_at - clock_timestamp()) * 1000 as remaining)
select json_agg(case when g.key is null then json_build_array('held', 0, 1000, '')
                     else json_build_array('granted', g.fence, g.remaining) end order by r.ord)::text as answer
  from r left join g on g.key = r.key and g.token = r.token`
}
