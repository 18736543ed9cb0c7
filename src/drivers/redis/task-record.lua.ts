/**
 * What the scripts of tasks begin with.
 *
 * Input: `KEYS[1]` is the control version, `KEYS[2]` the set of all task names, `KEYS[3]` the ended rows of all run
 * logs by their end; then the record and the run log of each item's task in turn.
 *
 * A record is a hash that never expires: numbers as digits (slots, mark and times in milliseconds, the expiry of the
 * run in microseconds), flags as 0 or 1, the former fingerprints and the applied requests as JSON lists of text. The
 * fence stays after the run has ended, so that the next one is greater.
 *
 * A run log is a sorted set by slot. A member is ten digits of the attempt, so that members of one slot sort by it,
 * and a JSON list: slot, attempt, state, reason, after, gap, fence, holder, started, ended, error, late. All are texts,
 * or false for null; JSON of Lua rounds large numbers.
 *
 * The time is read once. Each answer is a list of texts that begins with the outcome; `failed` and a text is this
 * item's error, and nothing of the item is applied then: all its keys are read before the first is written.
 */
export const taskRecordLua: string = String.raw`
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)
local control, index, ended = KEYS[1], KEYS[2], KEYS[3]
local base = string.sub(control, 1, -2)
local wrote, version = false, nil

local function digits(number)
  return string.format('%.0f', number)
end

local names = {
  'mark', 'generation', 'fingerprint', 'former', 'definition', 'registered', 'attended', 'paused', 'by', 'orders',
  'requests',
  'running', 'slot', 'attempt', 'token', 'fence', 'holder', 'expires', 'stopping', 'stop',
}
local numbers = {
  mark = true, generation = true, registered = true, attended = true, slot = true, attempt = true, fence = true,
  expires = true,
}
local flags = { paused = true, running = true, stopping = true }
local lists = { former = true, requests = true }

local function load(name)
  local values = redis.pcall('HMGET', name, unpack(names))
  if values.err then return nil, values.err end
  if not values[1] then
    if redis.call('EXISTS', name) == 0 then return nil end
    return nil, 'FOREIGN it is no record of a task'
  end
  local record = { changed = {} }
  for i, field in ipairs(names) do
    local value = values[i]
    if numbers[field] then
      value = tonumber(value)
      if value ~= value then value = nil end
    elseif flags[field] then
      value = value == '1'
    elseif lists[field] then
      local fine, list = pcall(cjson.decode, value)
      value = fine and type(list) == 'table' and list or nil
    end
    if value == nil or values[i] == false then return nil, 'FOREIGN it is no record of this version of Leasehold' end
    record[field] = value
  end
  return record
end

local function change(record, field, value)
  record[field] = value
  record.changed[#record.changed + 1] = field
end

-- A full store refuses the first write of a script if it could need memory, and none after it. What must not fail for
-- that begins with a write that needs none.
local function begin_writing(name)
  if not wrote then redis.call('PERSIST', name) end
  wrote = true
end

local function save(name, record)
  if #record.changed == 0 then return end
  local fields = {}
  for _, field in ipairs(record.changed) do
    local value = record[field]
    if numbers[field] then
      value = digits(value)
    elseif flags[field] then
      value = value and '1' or '0'
    elseif lists[field] then
      value = #value == 0 and '[]' or cjson.encode(value)
    end
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
  redis.call('HSET', name, unpack(fields))
  wrote = true
end

local function task_of(name)
  return string.sub(name, #base + 3)
end

local function is_under_way(record)
  return record.running and record.expires > now_us
end

local function mint(record)
  local fence = math.max(record.fence + 1, now_us)
  if fence > 9007199254740991 then return nil end
  return fence
end

local function add_to_version()
  version = redis.call('INCR', control)
  wrote = true
end

local function publish_version()
  -- Not every user may publish; nodes find out by their next poll then.
  if version then redis.pcall('PUBLISH', base .. 'wake', 'c' .. digits(version)) end
end

-- Before anything is written: a key that all items share and that holds a foreign type fails the whole call.
local function check_shared()
  redis.call('SCARD', index)
  redis.call('ZCARD', ended)
  local value = redis.call('GET', control)
  if value and not string.find(value, '^%d+$') then
    return redis.error_reply('FOREIGN the control version is no number')
  end
end

local function check_log(log)
  local size = redis.pcall('ZCARD', log)
  if type(size) == 'table' then return size.err end
end

local function find_row(log, slot, attempt)
  local mine = string.format('%010.0f', attempt)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', log, digits(slot), digits(slot))) do
    if string.sub(member, 1, 10) == mine then return member, cjson.decode(string.sub(member, 11)) end
  end
end

local function replace_row(log, slot, attempt, row)
  local before = find_row(log, slot, attempt)
  if before then redis.call('ZREM', log, before) end
  redis.call('ZADD', log, digits(slot), string.format('%010.0f', attempt) .. cjson.encode(row))
end

-- A row is purged by when its end was recorded.
local function put_row(log, slot, attempt, row)
  replace_row(log, slot, attempt, row)
  local id = digits(slot) .. ' ' .. digits(attempt) .. ' ' .. task_of(log)
  if row[10] then redis.call('ZADD', ended, digits(now), id) else redis.call('ZREM', ended, id) end
end

local function log_undone(log, slot, state, reason, after, gap, holder)
  put_row(log, slot, 0, {
    digits(slot), '0', state, reason, digits(after), gap, false, holder, digits(now), digits(now), false, false,
  })
end

local function last_attempt(log, slot)
  local member = redis.call('ZREVRANGEBYSCORE', log, digits(slot), digits(slot), 'LIMIT', 0, 1)[1]
  return member and tonumber(string.sub(member, 1, 10)) or 0
end

local function log_started(log, record, after, gap, reason)
  put_row(log, record.slot, record.attempt, {
    digits(record.slot), digits(record.attempt), 'running', reason or false, digits(after), gap, digits(record.fence),
    record.holder, digits(now), false, false, false,
  })
end

local function log_end(log, slot, attempt, state, reason, trouble, at)
  local _, row = find_row(log, slot, attempt)
  if not row then return end
  row[3], row[4], row[10], row[11] = state, reason or row[4], digits(at), trouble
  put_row(log, slot, attempt, row)
end

local function end_run(record)
  change(record, 'running', false)
  for _, field in ipairs({ 'token', 'holder', 'stop' }) do change(record, field, '') end
  change(record, 'stopping', false)
end

local function create(name, log, fingerprint, definition, attend, mark)
  local record = { changed = {} }
  local values = {
    mark = mark, generation = 1, fingerprint = fingerprint, former = {}, definition = definition, registered = now,
    attended = now + attend, paused = false, by = '', orders = '', requests = {}, running = false, slot = 0, attempt = 0,
    token = '', fence = 0, holder = '', expires = 0, stopping = false, stop = '',
  }
  for _, field in ipairs(names) do change(record, field, values[field]) end
  save(name, record)
  redis.call('SADD', index, task_of(name))
  log_undone(log, mark, 'registered', false, mark, '', false)
  return record
end

local function answer(outcome, record, extra)
  return {
    outcome, digits(now), digits(record.mark), digits(record.generation), record.paused and '1' or '0',
    record.running and '1' or '0', digits(record.slot), digits(record.attempt), digits(record.fence),
    digits(record.expires - now_us), record.holder, extra or '', record.orders,
  }
end
`
