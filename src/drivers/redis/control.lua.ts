import { taskRecordLua } from './task-record.lua.ts'

/**
 * Applies one operator request, once.
 *
 * Input: `KEYS` as in task-record.lua.ts with one task; `ARGV` kind, request id, by, `1` and the fence or `0` and
 * nothing, the orders before and after.
 *
 * Output: one answer: `applied` or `repeated` and the control version; `idle`; `changed`; `unregistered`; or `failed` and why.
 *
 * Atomic because a script is: the request is noted, applied, counted and published in one step.
 */
export const controlLua: string = String.raw`${taskRecordLua}
local trouble = check_shared()
if trouble then return trouble end

local name = KEYS[4]
local kind, request, by, fence = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1' and tonumber(ARGV[5])
local record, wrong = load(name)
if wrong then return { { 'failed', wrong } } end
if not record then return { { 'unregistered' } } end
for _, applied in ipairs(record.requests) do
  if applied == request then return { { 'repeated', redis.call('GET', control) or '0' } } end
end
if kind == 'cancel' then
  if not is_under_way(record) or (fence and fence ~= record.fence) then return { { 'idle' } } end
  change(record, 'stopping', true)
  change(record, 'stop', by)
elseif kind == 'order' then
  if record.orders ~= ARGV[6] then return { { 'changed' } } end
  change(record, 'orders', ARGV[7])
else
  change(record, 'paused', kind == 'pause')
  change(record, 'by', kind == 'pause' and by or '')
end
local requests = record.requests
requests[#requests + 1] = request
while #requests > 16 do table.remove(requests, 1) end
change(record, 'requests', requests)
begin_writing(name)
save(name, record)
add_to_version()
publish_version()
return { { 'applied', digits(version) } }
`
