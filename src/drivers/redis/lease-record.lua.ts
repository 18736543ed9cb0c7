/**
 * What the scripts of plain leases begin with.
 *
 * Input: `KEYS[1]` is what stands before the stored form of a key in its name (`{leasehold:prod}:k:`), the other
 * `KEYS` are the records of the request's items in order. `ARGV[1]` is how long a free record is kept, in
 * milliseconds.
 *
 * A record is one string, so that reading and writing it is one command each:
 *
 *     1 <fence> <expires> <acquired> <waiting until> <revoked> <token> <spent token> <holder>
 *
 * `1` is the version of this form. The four numbers have 16 digits, so that one of them is read or replaced without
 * taking the others apart; times are microseconds of the server's clock. A free record has `-` for its token, 0 for
 * `expires` and no holder. Whether a key is held is judged by `expires`, never by its presence: the key outlives the
 * lease, so that the fence and the spent token do.
 *
 * Numbers are written by `%.0f`, because `tostring` rounds microseconds away. The time is read once: it moves within
 * a script. Everything else in a script is a function of that and of the records, and what is replicated are the
 * commands that wrote.
 *
 * Each answer is a text that begins with one letter; `f` is this item's error, and the item is unchanged then.
 */
export const leaseRecordLua: string = String.raw`
local call, try, sub, match, format, ceil = redis.call, redis.pcall, string.sub, string.match, string.format, math.ceil
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local base = KEYS[1]
local retention = tonumber(ARGV[1])
local wrote, px, px_text = false, nil, nil

-- Most items of a batch have the same times: each is written out once.
local written_out = {}
local function digits(number)
  local text = written_out[number]
  if not text then
    text = format('%016.0f', number)
    written_out[number] = text
  end
  return text
end

-- Answers the record as it is, its fence, when it expires; or nothing; or only why it is none.
local function read(name)
  local record = try('GET', name)
  if not record then return nil end
  if type(record) == 'table' then return nil, 0, 0, record.err end
  -- Digits alone: to Lua 'nan' is a number as well.
  local fence = tonumber(match(sub(record, 3, 18), '^%d+$'))
  local expires = tonumber(match(sub(record, 20, 35), '^%d+$'))
  if fence and expires and sub(record, 1, 2) == '1 ' then return record, fence, expires end
  return nil, 0, 0, 'FOREIGN it is no record of this version of Leasehold'
end

local function waiting_of(record) return tonumber(sub(record, 54, 69)) or 0 end
local function is_revoked(record) return sub(record, 71, 71) == '1' end
local function has_token(record, token)
  local after = 73 + #token
  return sub(record, 73, after - 1) == token and sub(record, after, after) == ' '
end
local function token_of(record) return match(record, '^%S+', 73) or '-' end
local function spent_of(record) return match(record, '^%S+ (%S+)', 73) or '-' end
local function holder_of(record) return match(record, '^%S+ %S+ (.*)$', 73) or '' end

-- What a record begins with; token, spent token and holder follow.
local function numbers(fence, expires, acquired, waiting)
  return '1 ' .. digits(fence) .. ' ' .. digits(expires) .. ' ' .. digits(acquired) .. ' ' .. digits(waiting) .. ' 0 '
end

local function with_expires(record, expires) return sub(record, 1, 19) .. digits(expires) .. sub(record, 36) end
local function with_waiting(record, waiting) return sub(record, 1, 53) .. digits(waiting) .. sub(record, 70) end
local function with_revoked(record) return sub(record, 1, 70) .. '1' .. sub(record, 72) end

-- A fence ahead of the clock is kept until the clock has passed it: the next one has to be greater.
local function write(name, record, fence, expires)
  local keep = expires
  if fence > keep then keep = fence end
  if now > keep then keep = now end
  local ms = ceil((keep - now) / 1000) + retention
  if ms ~= px then
    px, px_text = ms, format('%.0f', ms)
  end
  call('SET', name, record, 'PX', px_text)
  wrote = true
end

-- A full store refuses the first write of a script if it could need memory, and none after it. What only renews or
-- frees begins with a write that needs none, so that leases survive a full store.
local function rewrite(name, record, fence, expires)
  if not wrote then call('PERSIST', name) end
  write(name, record, fence, expires)
end

-- Of a free record only the fence and the spent token count.
local function free(name, record, fence, token)
  rewrite(name, numbers(fence, 0, 0, 0) .. '- ' .. token .. ' ', fence, 0)
  -- Not every user may publish; those who wait find out by asking then.
  if waiting_of(record) > now then try('PUBLISH', sub(base, 1, -3) .. 'wake', 'r' .. sub(name, #base + 1)) end
end

local function describe(record, fence, expires)
  return 'p ' .. digits(fence) .. ' ' .. sub(record, 37, 52) .. ' ' .. digits(expires) .. ' ' .. digits(expires - now)
    .. (waiting_of(record) > now and ' 1' or ' 0') .. (is_revoked(record) and ' 1 ' or ' 0 ') .. holder_of(record)
end
`
