import { leaseRecordLua } from './lease-record.lua.ts'

/**
 * Describes the held leases of some keys. Writes nothing.
 *
 * Input: `KEYS` and `ARGV[1]` as in lease-record.lua.ts.
 *
 * Output per item: `p <fence> <acquired µs> <expires µs> <remaining µs> <awaited> <revoked> <holder>`, `n` (nobody),
 * `f <error>`.
 *
 * Atomic because a script is: all answers are of one moment.
 */
export const peekLua: string = String.raw`${leaseRecordLua}
local answers = {}
for i = 2, #KEYS do
  local record, fence, expires, trouble = read(KEYS[i])
  if trouble then
    answers[i - 1] = 'f ' .. trouble
  else
    answers[i - 1] = record and expires > now and describe(record, fence, expires) or 'n'
  end
end
return answers
`
