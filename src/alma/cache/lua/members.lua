-- A group is a sorted set of members, each an escaped record id, a line break and the value that is shown.
local function shown(member)
  return string.sub(member, string.find(member, '\n', 1, true) + 1)
end

local function best(group, limit)
  local seen, found = {}, {}
  for _, member in ipairs(redis.call('ZREVRANGE', group, 0, limit - 1)) do
    local value = shown(member)
    if not seen[value] then seen[value] = true; found[#found + 1] = value end
  end
  return found
end

