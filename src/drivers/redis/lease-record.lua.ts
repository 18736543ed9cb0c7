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
 * `1` is the version of this form; times are microseconds of the server's clock; a free record has `-` for its token
 * and 0 for `expires`. Whether a key is held is judged by `expires`, never by its presence: the key outlives the lease,
 * so that the fence and the spent token do.
 *
 * Numbers are written by `%.0f`, because `tostring` rounds microseconds away. The time is read once: it moves within
 * a script. Everything else in a script is a function of that and of the records, and what is replicated are the
 * commands that wrote.
 *
 * Each answer is a text that begins with one letter; `f` is this item's error, and the item is unchanged then.
 */
export const leaseRecordLua: string = String.raw`
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local base = KEYS[1]
local retention = tonumber(ARGV[1])
local wrote = false

local function read(name)
  local text = redis.pcall('GET', name)
  if not text then return nil end
  if text.err then return nil, text.err end
  local fence, expires, acquired, waiting, revoked, token, spent, holder =
    string.match(text, '^1 (%d+) (%d+) (%d+) (%d+) ([01]) (%S+) (%S+) (.*)$')
  if not fence then return nil, 'FOREIGN it is no record of this version of Leasehold' end
  return {
    fence = tonumber(fence), expires = tonumber(expires), acquired = tonumber(acquired),
    waiting = tonumber(waiting), revoked = revoked == '1', token = token, spent = spent, holder = holder,
  }
end

local function write(name, record)
  local text = string.format('1 %.0f %.0f %.0f %.0f ', record.fence, record.expires, record.acquired, record.waiting)
    .. (record.revoked and '1 ' or '0 ') .. record.token .. ' ' .. record.spent .. ' ' .. record.holder
  -- A fence ahead of the clock is kept until the clock has passed it: the next one must be greater.
  local keep_until = math.max(record.expires, record.fence, now)
  redis.call('SET', name, text, 'PX', math.ceil((keep_until - now) / 1000) + retention)
  wrote = true
end

-- A full store refuses the first write of a script if it could need memory, and none after it. What only renews or
-- frees begins with a write that needs none, so that leases survive a full store.
local function rewrite(name, record)
  if not wrote then redis.call('PERSIST', name) end
  write(name, record)
end

local function free(name, record)
  local awaited = record.waiting > now
  record.spent, record.token, record.holder = record.token, '-', ''
  record.expires, record.acquired, record.waiting, record.revoked = 0, 0, 0, false
  rewrite(name, record)
  -- Not every user may publish; those who wait find out by asking then.
  if awaited then redis.pcall('PUBLISH', string.sub(base, 1, -3) .. 'wake', 'r' .. string.sub(name, #base + 1)) end
end

local function is_held(record)
  return record ~= nil and record.expires > now
end

local function describe(record)
  return string.format('p %.0f %.0f %.0f %.0f %d %d ', record.fence, record.acquired, record.expires,
    record.expires - now, record.waiting > now and 1 or 0, record.revoked and 1 or 0) .. record.holder
end
`
