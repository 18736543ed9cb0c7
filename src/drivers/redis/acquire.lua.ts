import { leaseRecordLua } from './lease-record.lua.ts'

/**
 * Grants keys that are free, expired, or held under the same token already.
 *
 * Input: `KEYS` and `ARGV[1]` as in lease-record.lua.ts, then per item token, ttl in microseconds, waiting in
 * microseconds, holder.
 *
 * Output per item: `g <fence> <remaining µs>`, `h <fence> <remaining µs> <holder>`, `s` (spent), `f <error>`.
 *
 * Atomic because a script is: no other command runs between reading a record and writing the grant with its fence, or
 * between finding it held and noting that somebody waits.
 */
export const acquireLua: string = String.raw`${leaseRecordLua}
local answers = {}
for i = 2, #KEYS do
  local at = 4 * i - 6
  local name, token, ttl, wait, holder = KEYS[i], ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), ARGV[at + 3]
  local record, trouble = read(name)
  local again = is_held(record) and record.token == token and not record.revoked
  if trouble then
    answers[i - 1] = 'f ' .. trouble
  elseif token == '-' or not string.find(token, '^%S+$') then
    answers[i - 1] = 'f TOKEN a token is text without spaces, and not a single hyphen'
  elseif record and record.spent == token then
    answers[i - 1] = 's'
  elseif again then
    record.expires = math.max(record.expires, now + ttl)
    rewrite(name, record)
    answers[i - 1] = string.format('g %.0f %.0f', record.fence, record.expires - now)
  elseif is_held(record) then
    if wait > 0 and now + wait > record.waiting then
      record.waiting = now + wait
      rewrite(name, record)
    end
    answers[i - 1] = string.format('h %.0f %.0f ', record.fence, record.expires - now) .. record.holder
  else
    local fence = math.max((record and record.fence or 0) + 1, now)
    if fence > 9007199254740991 then
      answers[i - 1] = 'f FENCE its fence is the last safe integer'
    else
      write(name, {
        fence = fence, expires = now + ttl, acquired = now, waiting = record and record.waiting or 0,
        revoked = false, token = token, spent = record and record.spent or '-', holder = holder,
      })
      answers[i - 1] = string.format('g %.0f %.0f', fence, ttl)
    end
  end
end
return answers
`
