import { leaseRecordLua } from './lease-record.lua.ts'

/**
 * Takes a key from the holder whose fence the operator saw.
 *
 * Input: `KEYS` and `ARGV[1]` as in lease-record.lua.ts with one item, then the fence, and `1` to free the key at once
 * or `0` to mark the lease revoked.
 *
 * Output: one text: `v <remaining µs>` (revoked), `r` (freed), `n` (nobody holds it), `c <fence>` (changed),
 * `f <error>`.
 *
 * Atomic because a script is: the fence that was compared is that of the lease that is taken.
 */
export const revokeLua: string = String.raw`${leaseRecordLua}
local record, trouble = read(KEYS[2])
if trouble then return { 'f ' .. trouble } end
if not is_held(record) then return { 'n' } end
if record.fence ~= tonumber(ARGV[2]) then return { string.format('c %.0f', record.fence) } end
if ARGV[3] == '1' then
  free(KEYS[2], record)
  return { 'r' }
end
record.revoked = true
rewrite(KEYS[2], record)
return { string.format('v %.0f', record.expires - now) }
`
