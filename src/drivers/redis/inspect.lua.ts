import { taskRecordLua } from './task-record.lua.ts'

/**
 * Describes tasks. Writes nothing.
 *
 * Input: `KEYS` as in task-record.lua.ts; without a task, all tasks of the namespace are meant.
 *
 * Output per task: its name, then as `answer` there with outcome `known`, then fingerprint, definition, registered at,
 * attended until, who paused it, whether it is asked to stop, and why; the name and `unknown`; or the name, `failed`
 * and why.
 *
 * Atomic because a script is: all answers are of one moment.
 */
export const inspectLua: string = String.raw`${taskRecordLua}
local wanted = {}
if #KEYS == 3 then
  for _, task in ipairs(redis.call('SMEMBERS', index)) do wanted[#wanted + 1] = base .. 't:' .. task end
end
for i = 4, #KEYS, 2 do wanted[#wanted + 1] = KEYS[i] end

local answers = {}
for _, name in ipairs(wanted) do
  local record, wrong = load(name)
  if wrong then
    answers[#answers + 1] = { task_of(name), 'failed', wrong }
  elseif not record then
    answers[#answers + 1] = { task_of(name), 'unknown' }
  else
    local known = answer('known', record)
    table.insert(known, 1, task_of(name))
    for _, value in ipairs({
      record.fingerprint, record.definition, digits(record.registered), digits(record.attended), record.by,
      record.stopping and '1' or '0', record.stop,
    }) do known[#known + 1] = value end
    answers[#answers + 1] = known
  end
end
return answers
`
