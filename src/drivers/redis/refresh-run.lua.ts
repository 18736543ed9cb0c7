import { taskRecordLua } from './task-record.lua.ts'

/**
 * Renews runs that are under way under their token, and passes on requests to stop.
 *
 * Input: `KEYS` as in task-record.lua.ts; `ARGV` per item token, ttl in microseconds.
 *
 * Output per item: `held`, remaining microseconds, `1` if the run is asked to stop, and why; `lost`; or `failed` and
 * why.
 *
 * Atomic because a script is: the token that was compared is that of the run that is renewed.
 */
export const refreshRunLua: string = String.raw`${taskRecordLua}
local answers = {}
for i = 4, #KEYS, 2 do
  local name, token, ttl = KEYS[i], ARGV[i - 3], tonumber(ARGV[i - 2])
  local record, wrong = load(name)
  if wrong then
    answers[#answers + 1] = { 'failed', wrong }
  elseif not record or not is_under_way(record) or record.token ~= token then
    answers[#answers + 1] = { 'lost' }
  else
    if now_us + ttl > record.expires then
      begin_writing(name)
      change(record, 'expires', now_us + ttl)
      save(name, record)
    end
    answers[#answers + 1] = {
      'held', digits(record.expires - now_us), record.stopping and '1' or '0', record.stop,
    }
  end
end
return answers
`
