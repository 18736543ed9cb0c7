import { taskRecordLua } from './task-record.lua.ts'

/**
 * Ends runs with their outcome, whether or not they have lapsed; what was fenced out is noted as late.
 *
 * Input: `KEYS` as in task-record.lua.ts; `ARGV` per item slot, attempt, fence, outcome, `1` and the reason or `0` and
 * nothing, `1` and the error or `0` and nothing.
 *
 * Output per item: `completed` or `late`, and the time in milliseconds; or `failed` and why.
 *
 * Atomic because a script is: the fence that was compared is that of the run that is ended.
 */
export const completeLua: string = String.raw`${taskRecordLua}
local trouble = check_shared()
if trouble then return trouble end

local answers = {}
for i = 4, #KEYS, 2 do
  local at = 4 * i - 15
  local name, log = KEYS[i], KEYS[i + 1]
  local slot, attempt, fence, outcome = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), ARGV[at + 3]
  local reason = ARGV[at + 4] == '1' and ARGV[at + 5]
  local report = ARGV[at + 6] == '1' and ARGV[at + 7]
  local record, wrong = load(name)
  wrong = wrong or check_log(log)
  if wrong then
    answers[#answers + 1] = { 'failed', wrong }
  elseif record and record.running and record.fence == fence and record.slot == slot and record.attempt == attempt then
    begin_writing(name)
    end_run(record)
    save(name, record)
    log_end(log, slot, attempt, outcome, reason, report, now)
    answers[#answers + 1] = { 'completed', digits(now) }
  else
    local _, row = find_row(log, slot, attempt)
    local is_mine = row and row[7] and tonumber(row[7]) == fence
    if is_mine and row[3] ~= 'lost' and row[3] ~= 'running' then
      answers[#answers + 1] = { 'completed', digits(now) }
    else
      if is_mine and row[12] ~= outcome then
        begin_writing(log)
        row[12] = outcome
        replace_row(log, slot, attempt, row)
      end
      answers[#answers + 1] = { 'late', digits(now) }
    end
  end
end
return answers
`
