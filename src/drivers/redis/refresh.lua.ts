import { leaseRecordLua } from './lease-record.lua.ts'

/**
 * Renews leases that are held under their token; never creates one, and never moves an expiry back.
 *
 * Input: `KEYS` and `ARGV[1]` as in lease-record.lua.ts, then per item the token and the ttl in microseconds, or nothing
 * if it is that of the item before.
 *
 * Output per item: `h <remaining µs>`, `l` (gone), `r` (revoked), `f <error>`.
 *
 * Atomic because a script is: the token that was compared is the token of the record that is written.
 */
export const refreshLua: string = String.raw`${leaseRecordLua}
local function refresh(name, token, ttl)
  local record, fence, expires, trouble = read(name)
  if trouble then return 'f ' .. trouble end
  if not record or expires <= now or not has_token(record, token) then return 'l' end
  if is_revoked(record) then return 'r' end
  if now + ttl > expires then
    expires = now + ttl
    rewrite(name, with_expires(record, expires), fence, expires)
  end
  return 'h ' .. digits(expires - now)
end

local answers, ttl = {}, nil
for i = 2, #KEYS do
  local other = ARGV[2 * i - 1]
  if other ~= '' then ttl = tonumber(other) end
  answers[i - 1] = refresh(KEYS[i], ARGV[2 * i - 2], ttl)
end
return answers
`
