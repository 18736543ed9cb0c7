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
local answers = {}
for i = 2, #KEYS do
  local token = ARGV[i]
  local record, trouble = read(KEYS[i])
  if trouble then
    answers[i - 1] = 'f ' .. trouble
  elseif not record or token == '-' then
    answers[i - 1] = 'l'
  elseif record.token == token then
    answers[i - 1] = is_held(record) and 'r' or 'l'
    free(KEYS[i], record)
  else
    answers[i - 1] = record.spent == token and 'r' or 'l'
  end
end
return answers
`
