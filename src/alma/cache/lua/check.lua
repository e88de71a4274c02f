-- Whether each shared key is absent, as when it expired, or has the value that its group gives.
-- ARGV: for each key its name, its group, its shape and its limit. Returns 1 or 0 for each.
local function set_is_sound(key, group)
  if redis.call('SCARD', key) ~= redis.call('ZCARD', group) then return false end
  for start = 0, redis.call('ZCARD', group) - 1, 1000 do
    for _, member in ipairs(redis.call('ZRANGE', group, start, start + 999)) do
      if redis.call('SISMEMBER', key, shown(member)) == 0 then return false end
    end
  end
  return true
end

local function same(left, right)
  if #left ~= #right then return false end
  for at = 1, #left do if left[at] ~= right[at] then return false end end
  return true
end

local types = {set = 'set', list = 'list', array = 'string', first = 'string'}

local function is_sound(key, group, shape, limit)
  local kind, grouped = redis.call('TYPE', key).ok, redis.call('TYPE', group).ok
  if grouped ~= 'zset' and grouped ~= 'none' then return false end
  if kind == 'none' then return true end
  if kind ~= types[shape] then return false end
  if shape == 'set' then return set_is_sound(key, group) end
  local values = best(group, limit)
  if shape == 'list' then return same(redis.call('LRANGE', key, 0, -1), values) end
  if shape == 'array' then return redis.call('GET', key) == '[' .. table.concat(values, ',') .. ']' end
  return redis.call('GET', key) == values[1]
end

local sound = {}
for at = 1, #ARGV, 4 do
  sound[#sound + 1] = is_sound(ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])) and 1 or 0
end
return sound
