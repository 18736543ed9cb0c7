import { leaseRecordLua } from './lease-record.lua.ts'

/**
 * One page of the held leases of the namespace. Writes nothing, and leaves out what is no lease.
 *
 * Input: `KEYS[1]` and `ARGV[1]` as in lease-record.lua.ts, then what the keys begin with, how many records at most,
 * where Redis's own scan goes on (`0` for the beginning, `-` when it is over), and the keys that the page before found
 * but had no room for.
 *
 * Output: where the scan goes on, or `-`; a list of keys found but left over; a list of key and description (as in
 * peek.lua.ts) in turn. There is another page if the first is not `-` or the second is not empty.
 *
 * A page looks at no more than some 10,000 names, so that it holds up nobody: in a large database it can be empty and
 * still have a next one. Redis may show a key twice while its table is resized.
 */
export const scanLua: string = String.raw`${leaseRecordLua}
local prefix, limit, cursor = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local seen, left, found, count = {}, {}, {}, 0

local function look(key)
  if seen[key] then return end
  seen[key] = true
  if count == limit then
    left[#left + 1] = key
    return
  end
  local record, fence, expires = read(base .. key)
  if record and expires > now then
    count = count + 1
    found[#found + 1] = key
    found[#found + 1] = describe(record, fence, expires)
  end
end

for i = 5, #ARGV do look(ARGV[i]) end

local pattern = string.gsub(base .. prefix, '[%*%?%[%]\\]', '\\%0') .. '*'
local names, budget = math.max(10, math.min(limit, 1000)), 10000
while cursor ~= '-' and count < limit and budget > 0 do
  local page = redis.call('SCAN', cursor, 'MATCH', pattern, 'COUNT', names)
  budget = budget - names
  cursor = page[1] == '0' and '-' or page[1]
  for _, name in ipairs(page[2]) do look(string.sub(name, #base + 1)) end
  if #page[2] == 0 then names = math.min(2 * names, 1000) end
end
return { cursor, left, found }
`
