import { leaseRecordLua } from './lease-record.lua.ts'

/**
 * Takes a key from the holder whose fence the operator saw.
 *
 * Input: `KEYS` and `ARGV[1]` as in lease-record.lua.ts with one item, then the fence, and `1` to free the key at once
 * or `0` to mark the lease revoked.
 *
 * Output: one answer: `v <remaining µs>` (revoked), `r` (freed), `n` (nobody holds it), `c <fence>` (changed),
 * `f <error>`.
 *
 * Atomic because a script is: the fence that was compared is that of the lease that is taken.
 */
export const revokeLua: string = String.raw`${leaseRecordLua}
local name, seen = KEYS[2], tonumber(ARGV[2])
local record, fence, expires, trouble = read(name)
if trouble then return { 'f ' .. trouble } end
if not record or expires <= now then return { 'n' } end
if fence ~= seen then return { 'c ' .. digits(fence) } end
if ARGV[3] == '1' then
  free(name, record, fence, token_of(record))
  return { 'r' }
end
rewrite(name, with_revoked(record), fence, expires)
return { 'v ' .. digits(expires - now) }
`
