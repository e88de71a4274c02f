-- A group is a sorted set of members, each an escaped record id, a line break and the value that is shown.
local function shown(member)
  local at = string.find(member, '\n', 1, true)
  return at and string.sub(member, at + 1) or member
end

local function best(group, limit)
  local seen, found = {}, {}
  for _, member in ipairs(redis.call('ZREVRANGE', group, 0, limit - 1)) do
    local value = shown(member)
    if not seen[value] then seen[value] = true; found[#found + 1] = value end
  end
  return found
end

-- An entry as {digest, {document keys}, {{pattern, key, group, member, score}, ...}}, without what is none of these.
local function entry_of(text)
  local readable, found = pcall(cjson.decode, text)
  local entry = {'', {}, {}}
  if not readable or type(found) ~= 'table' then return entry end
  if type(found[1]) == 'string' then entry[1] = found[1] end
  for _, key in ipairs(type(found[2]) == 'table' and found[2] or {}) do
    if type(key) == 'string' then table.insert(entry[2], key) end
  end
  for _, place in ipairs(type(found[3]) == 'table' and found[3] or {}) do
    if type(place) == 'table' and #place == 5 then table.insert(entry[3], place) end
  end
  return entry
end
