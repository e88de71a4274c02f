-- Give what no entry lists an entry that does, so that verify finds it and the next change of that id removes it.
-- ARGV: the hash of entries, the set of ids, then for each part its id, the key of a document or '', and the pattern,
-- key, group, member and score of a place, or ''.
-- A place is a member of a group, or stands for a key whose group does not exist.
local book, ids = ARGV[1], ARGV[2]

local function is_there(key, place)
  if key ~= '' then return redis.call('EXISTS', key) == 1 end
  local grouped = redis.call('TYPE', place[3]).ok
  if grouped == 'zset' then return redis.call('ZSCORE', place[3], place[4]) end
  return grouped == 'none' and redis.call('EXISTS', place[2]) == 1
end

local function is_listed(entry, key, place)
  if key ~= '' then
    for _, each in ipairs(entry[2]) do if each == key then return true end end
  else
    for _, each in ipairs(entry[3]) do if each[3] == place[3] and each[4] == place[4] then return true end end
  end
  return false
end

for at = 3, #ARGV, 7 do
  local id, key = ARGV[at], ARGV[at + 1]
  local place = {ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6]}
  local text = redis.call('HGET', book, id)
  local entry = entry_of(text)
  if (key ~= '' or place[1] ~= '') and is_there(key, place) and not is_listed(entry, key, place) then
    if key ~= '' then table.insert(entry[2], key) else table.insert(entry[3], place) end
    text = cjson.encode(entry)
    redis.call('HSET', book, id, text)
  end
  if text then redis.call('ZADD', ids, 0, id) end
end
