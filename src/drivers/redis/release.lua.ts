import { leaseRecordLua } from './lease-record.lua.ts'

/**
 * Frees keys whose token matches, remembers the token as spent, and tells those who wait.
 *
 * Input: `KEYS` and `ARGV[1]` as in lease-record.lua.ts, then per item the token.
 *
 * Output per item: `r` (released, now or before), `l` (lost), `f <error>`.
 *
 * Atomic because a script is: a successor's lease cannot come between the comparison and the write, and a waiter has
 * either noted itself in the record that is read here, or finds it free.
 */
export const releaseLua: string = String.raw`${leaseRecordLua}
local function release(name, token)
  local record, fence, expires, trouble = read(name)
  if trouble then return 'f ' .. trouble end
  if not record or token == '-' then return 'l' end
  if not has_token(record, token) then return spent_of(record) == token and 'r' or 'l' end
  free(name, record, fence, token)
  return expires > now and 'r' or 'l'
end

local answers = {}
for i = 2, #KEYS do answers[i - 1] = release(KEYS[i], ARGV[i]) end
return answers
`
