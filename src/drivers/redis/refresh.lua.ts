import { leaseRecordLua } from './lease-record.lua.ts'

/**
 * Renews leases that are held under their token; never creates one, and never moves an expiry back.
 *
 * Input: `KEYS` and `ARGV[1]` as in lease-record.lua.ts, then per item token, ttl in microseconds.
 *
 * Output per item: `h <remaining µs>`, `l` (gone), `r` (revoked), `f <error>`.
 *
 * Atomic because a script is: the token that was compared is the token of the record that is written.
 */
export const refreshLua: string = String.raw`${leaseRecordLua}
local answers = {}
for i = 2, #KEYS do
  local at = 2 * i - 2
  local record, trouble = read(KEYS[i])
  if trouble then
    answers[i - 1] = 'f ' .. trouble
  elseif not is_held(record) or record.token ~= ARGV[at] then
    answers[i - 1] = 'l'
  elseif record.revoked then
    answers[i - 1] = 'r'
  else
    local expires = now + tonumber(ARGV[at + 1])
    if expires > record.expires then
      record.expires = expires
      rewrite(KEYS[i], record)
    end
    answers[i - 1] = string.format('h %.0f', record.expires - now)
  end
end
return answers
`
