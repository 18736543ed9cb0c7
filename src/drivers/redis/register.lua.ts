import { taskRecordLua } from './task-record.lua.ts'

/**
 * Makes tasks known, notes that a node attends them, and takes over an edited schedule.
 *
 * Input: `KEYS` as in task-record.lua.ts; `ARGV` per item fingerprint, definition, `1` if the node is starting,
 * attendance in milliseconds, the instant that a new mark is at most (empty: now).
 *
 * Output per item: as `answer` there: `created`, `current`, `raised`, `superseded`; or `failed` and why.
 *
 * Atomic because a script is: of two nodes that bring a task, one creates it and the other finds it.
 */
export const registerLua: string = String.raw`${taskRecordLua}
local trouble = check_shared()
if trouble then return trouble end

local function attend(name, record, definition, starting, attend)
  local fresh = record.attended - now > attend / 2
  local redefined = starting and record.definition ~= definition
  if fresh and not redefined then return end
  begin_writing(name)
  change(record, 'attended', math.max(record.attended, now + attend))
  if redefined then change(record, 'definition', definition) end
  save(name, record)
end

local function raise(name, log, record, fingerprint, definition, attend, since)
  local former = {}
  for _, old in ipairs(record.former) do
    if old ~= fingerprint then former[#former + 1] = old end
  end
  former[#former + 1] = record.fingerprint
  while #former > 8 do table.remove(former, 1) end
  local after = record.mark
  change(record, 'mark', math.max(after, since))
  change(record, 'fingerprint', fingerprint)
  change(record, 'former', former)
  change(record, 'generation', record.generation + 1)
  change(record, 'definition', definition)
  change(record, 'attended', math.max(record.attended, now + attend))
  save(name, record)
  if record.mark > after then log_undone(log, record.mark, 'missed', 'edited', after, 'edited', false) end
  add_to_version()
end

local function was_former(record, fingerprint)
  for _, old in ipairs(record.former) do
    if old == fingerprint then return true end
  end
  return false
end

-- Somebody may have deleted the set of names alone.
local function note_name(name)
  if redis.call('SISMEMBER', index, task_of(name)) == 1 then return end
  begin_writing(name)
  redis.call('SADD', index, task_of(name))
end

local answers = {}
for i = 4, #KEYS, 2 do
  local at = (i - 4) / 2 * 5 + 1
  local name, log = KEYS[i], KEYS[i + 1]
  local fingerprint, definition, starting, attendance = ARGV[at], ARGV[at + 1], ARGV[at + 2] == '1', tonumber(ARGV[at + 3])
  local since = math.min(tonumber(ARGV[at + 4]) or now, now)
  local record, wrong = load(name)
  wrong = wrong or check_log(log)
  local outcome
  if wrong then
    answers[#answers + 1] = { 'failed', wrong }
  elseif not record then
    outcome, record = 'created', create(name, log, fingerprint, definition, attendance, since)
  elseif record.fingerprint == fingerprint then
    outcome = 'current'
    attend(name, record, definition, starting, attendance)
  elseif (starting and not was_former(record, fingerprint)) or record.attended <= now then
    outcome = 'raised'
    raise(name, log, record, fingerprint, definition, attendance, since)
  else
    outcome = 'superseded'
  end
  if outcome then
    note_name(name)
    answers[#answers + 1] = answer(outcome, record)
  end
end
publish_version()
return answers
`
