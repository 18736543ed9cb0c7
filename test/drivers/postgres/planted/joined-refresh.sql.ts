import type { TableNames } from '../../../../src/drivers/postgres/schema.sql.ts'

/**
 * Renewing by a join of the requests with the table. Takes and answers what the driver's own statement does.
 *
 * Wrong, although it renews the right rows: which side of the join is read first is the plan's choice, and a plan that
 * was made while the table was empty reads all of it for ever.
 */
export function joinedRefreshSql({ leases }: TableNames): string {
  return `with r as materialized (
  select * from unnest($2::text::text[], $3::text::text[], $4::text::float8[]) with ordinality u(key, token, ttl, ord)),
mine as materialized (
  select l.key, r.ttl from r join ${leases} l on l.namespace = $1 and l.key = r.key and l.token = r.token
   where l.expires_at > clock_timestamp()
   order by l.key for no key update of l skip locked),
upd as (
  update ${leases} l set expires_at = greatest(l.expires_at, clock_timestamp() + m.ttl * interval '1 ms')
    from mine m where l.namespace = $1 and l.key = m.key
  returning l.key, extract(epoch from l.expires_at - clock_timestamp()) * 1000 as remaining)
select json_agg(case when upd.key is null then json_build_array('gone')
                     else json_build_array('held', upd.remaining) end order by r.ord)::text as answer
  from r left join upd on upd.key = r.key`
}
