import { taskRecordLua } from './task-record.lua.ts'

/**
 * Claims one slot of each task. The rules are numbered as in src/driver/task-driver.ts.
 *
 * Input: `KEYS` as in task-record.lua.ts; `ARGV` per item slot, after, gap, fingerprint, definition, attendance in
 * milliseconds, token, ttl in microseconds, holder, overlap, onCrash, most attempts, decide, reason; `1` and the orders
 * before and after for a manual run, `0` and nothing twice for a slot of the schedule.
 *
 * Output per item: as `answer` there; the last text is the reason of `skipped`. For `granted` and `takeover` the
 * running slot is the one to run. Or `failed` and why.
 *
 * Atomic because a script is: the mark that was compared is the mark that is moved, and the fence is minted with it.
 */
export const claimLua: string = String.raw`${taskRecordLua}
local trouble = check_shared()
if trouble then return trouble end

local function start(record, claim, fence, slot, attempt)
  change(record, 'running', true)
  change(record, 'slot', slot)
  change(record, 'attempt', attempt)
  change(record, 'token', claim.token)
  change(record, 'fence', fence)
  change(record, 'holder', claim.holder)
  change(record, 'expires', now_us + claim.ttl)
  change(record, 'stopping', false)
  change(record, 'stop', '')
end

local function leave_out(record, log, claim, state, reason)
  local after = record.mark
  change(record, 'mark', claim.slot)
  save(claim.name, record)
  log_undone(log, claim.slot, state, reason, after, claim.gap, claim.holder)
  return answer('skipped', record, reason)
end

local function decide_order(record, log, claim)
  if claim.before ~= record.orders then return answer('behind', record) end
  if claim.slot > now then return answer('early', record) end
  if claim.decide ~= 'miss' and record.running then return answer('held', record) end
  begin_writing(claim.name)
  change(record, 'orders', claim.next_orders)
  if claim.decide == 'miss' then
    save(claim.name, record)
    return answer('skipped', record, claim.reason)
  end
  start(record, claim, claim.fence, claim.slot, last_attempt(log, claim.slot) + 1)
  save(claim.name, record)
  log_started(log, record, claim.slot, claim.gap, claim.reason)
  return answer('granted', record)
end

local function decide(record, log, claim)
  if claim.is_manual then return decide_order(record, log, claim) end
  -- 5 to 7
  if claim.slot > now then return answer('early', record) end
  if claim.slot <= record.mark then return answer('decided', record) end
  if claim.after ~= record.mark then return answer('behind', record) end
  -- 8 and 9
  if record.paused then return leave_out(record, log, claim, 'skipped', 'paused') end
  if claim.decide == 'miss' then return leave_out(record, log, claim, 'missed', claim.reason) end
  -- 10
  if record.running then
    local is_overlapped = record.expires > now_us and claim.overlap == 'skip'
    if is_overlapped then return leave_out(record, log, claim, 'skipped', 'overlap') end
    return answer('held', record)
  end
  -- 11
  local after = record.mark
  change(record, 'mark', claim.slot)
  start(record, claim, claim.fence, claim.slot, 1)
  save(claim.name, record)
  log_started(log, record, after, claim.gap)
  return answer('granted', record)
end

local function take_over(record, log, claim)
  local slot, attempt, lapsed = record.slot, record.attempt, math.floor(record.expires / 1000)
  start(record, claim, claim.fence, slot, attempt + 1)
  save(claim.name, record)
  log_end(log, slot, attempt, 'lost', false, false, lapsed)
  log_started(log, record, slot, '')
  return answer('takeover', record)
end

local function apply(record, log, claim)
  -- 2
  if record.fingerprint ~= claim.fingerprint then return answer('superseded', record) end
  if not record.running then return decide(record, log, claim) end
  if record.expires > now_us then
    if record.token ~= claim.token then return decide(record, log, claim) end
    -- 3
    begin_writing(claim.name)
    change(record, 'expires', math.max(record.expires, now_us + claim.ttl))
    save(claim.name, record)
    return answer(record.attempt > 1 and 'takeover' or 'granted', record)
  end
  -- 4
  if record.token == claim.token then return decide(record, log, claim) end
  if claim.on_crash == 'retry' and record.attempt < claim.most and not record.stopping then
    if record.paused then return decide(record, log, claim) end
    return take_over(record, log, claim)
  end
  local slot, attempt = record.slot, record.attempt
  local reason, request = record.stopping and 'cancelled', record.stopping and record.stop
  end_run(record)
  save(claim.name, record)
  log_end(log, slot, attempt, 'lost', reason, request, math.floor(record.expires / 1000))
  record.changed = {}
  return decide(record, log, claim)
end

local answers = {}
for i = 4, #KEYS, 2 do
  local at = (i - 4) / 2 * 17
  local name, log = KEYS[i], KEYS[i + 1]
  local claim = {
    name = name, slot = tonumber(ARGV[at + 1]), after = tonumber(ARGV[at + 2]), gap = ARGV[at + 3],
    fingerprint = ARGV[at + 4], token = ARGV[at + 7], ttl = tonumber(ARGV[at + 8]), holder = ARGV[at + 9],
    overlap = ARGV[at + 10], on_crash = ARGV[at + 11], most = tonumber(ARGV[at + 12]), decide = ARGV[at + 13],
    reason = ARGV[at + 14], is_manual = ARGV[at + 15] == '1', before = ARGV[at + 16], next_orders = ARGV[at + 17],
  }
  local record, wrong = load(name)
  wrong = wrong or check_log(log)
  claim.fence = record and mint(record) or nil
  if wrong then
    answers[#answers + 1] = { 'failed', wrong }
  elseif not record then
    -- 1
    record = create(name, log, claim.fingerprint, ARGV[at + 5], tonumber(ARGV[at + 6]), now)
    answers[#answers + 1] = answer('unregistered', record)
  elseif not claim.fence then
    answers[#answers + 1] = { 'failed', 'FENCE its fence is the last safe integer' }
  else
    answers[#answers + 1] = apply(record, log, claim)
  end
end
return answers
`
