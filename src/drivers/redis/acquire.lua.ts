import { leaseRecordLua } from './lease-record.lua.ts'

/**
 * Grants keys that are free, expired, or held under the same token already.
 *
 * Input: `KEYS` and `ARGV[1]` as in lease-record.lua.ts, then per item the token and how it is wanted: ttl in
 * microseconds, waiting in microseconds and holder with a space between them, or nothing if it is as the item before.
 *
 * Output per item: `g <fence> <remaining µs>`, `h <fence> <remaining µs> <holder>`, `s` (spent), `f <error>`.
 *
 * Atomic because a script is: no other command runs between reading a record and writing the grant with its fence, or
 * between finding it held and noting that somebody waits.
 */
export const acquireLua: string = String.raw`${leaseRecordLua}
local ttl, wait, holder, fresh, granted

local function want(how)
  ttl, wait, holder = match(how, '^(%d+) (%d+) (.*)$')
  ttl, wait = tonumber(ttl), tonumber(wait)
  -- What a key without a record gets is the same for all items that are wanted alike.
  fresh = numbers(now, now + ttl, now, 0)
  granted = 'g ' .. digits(now) .. ' ' .. digits(ttl)
end

local function acquire(name, token)
  local record, fence, expires, trouble = read(name)
  if trouble then return 'f ' .. trouble end
  if not record then
    write(name, fresh .. token .. ' - ' .. holder, now, now + ttl)
    return granted
  end
  local spent, waiting = spent_of(record), waiting_of(record)
  if spent == token then return 's' end
  if expires <= now then
    fence = fence + 1
    if fence > 9007199254740991 then return 'f FENCE its fence is the last safe integer' end
    if now > fence then fence = now end
    local record = numbers(fence, now + ttl, now, waiting) .. token .. ' ' .. spent .. ' ' .. holder
    write(name, record, fence, now + ttl)
    return 'g ' .. digits(fence) .. ' ' .. digits(ttl)
  end
  if has_token(record, token) and not is_revoked(record) then
    if now + ttl > expires then expires = now + ttl end
    rewrite(name, with_expires(record, expires), fence, expires)
    return 'g ' .. digits(fence) .. ' ' .. digits(expires - now)
  end
  if wait > 0 and now + wait > waiting then rewrite(name, with_waiting(record, now + wait), fence, expires) end
  return 'h ' .. digits(fence) .. ' ' .. digits(expires - now) .. ' ' .. holder_of(record)
end

local answers = {}
for i = 2, #KEYS do
  local how = ARGV[2 * i - 1]
  if how ~= '' then want(how) end
  answers[i - 1] = acquire(KEYS[i], ARGV[2 * i - 2])
end
return answers
`
