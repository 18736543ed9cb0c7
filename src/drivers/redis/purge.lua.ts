import { taskRecordLua } from './task-record.lua.ts'

/**
 * Deletes rows of the run logs that ended long ago, the oldest end first.
 *
 * Input: `KEYS` as in task-record.lua.ts, without a task; `ARGV` the age in milliseconds, how many rows at most.
 *
 * Output: how many were deleted.
 *
 * Atomic because a script is: a row leaves its log and the list of ended rows together. The logs are keys that `KEYS`
 * cannot name beforehand; they share its hash tag.
 */
export const purgeLua: string = String.raw`${taskRecordLua}
local ids = redis.call('ZRANGEBYSCORE', ended, '-inf', digits(now - tonumber(ARGV[1])), 'LIMIT', 0, ARGV[2])
local deleted = 0
for _, id in ipairs(ids) do
  local slot, attempt, task = string.match(id, '^(%-?%d+) (%d+) (.*)$')
  local log = base .. 'r:' .. task
  if not check_log(log) then
    local member = find_row(log, tonumber(slot), tonumber(attempt))
    if member then
      redis.call('ZREM', log, member)
      deleted = deleted + 1
    end
  end
  redis.call('ZREM', ended, id)
end
return { digits(deleted) }
`
