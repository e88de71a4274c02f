-- Make the entries of records equal to the given states, then rebuild the keys that these records share.
-- ARGV: the shapes of shared keys by their pattern, then for each record: the hash of entries, the set of ids, the id,
-- the entry ("" deletes it), and the documents.
-- A group holds the members of a key without a time to live, so that a key that expired can be rebuilt from it.
local shapes = cjson.decode(ARGV[1])
local touched = {}

local function require_group(group)
  local kind = redis.call('TYPE', group).ok
  if kind ~= 'zset' and kind ~= 'none' then redis.call('DEL', group) end
end

local function touch(place, command)
  local key = place[2]
  if shapes[place[1]][1] == 'set' then
    if redis.call('TYPE', key).ok ~= 'set' then redis.call('DEL', key) end
    redis.call(command, key, shown(place[4]))
  end
  touched[key] = place
end

local function remove(entry)
  for _, key in ipairs(entry[2]) do redis.call('DEL', key) end
  for _, place in ipairs(entry[3]) do
    require_group(place[3])
    redis.call('ZREM', place[3], place[4])
    touch(place, 'SREM')
  end
end

local function add(entry, documents)
  for _, document in ipairs(documents) do redis.call('SET', document[1], document[2], 'PX', document[3]) end
  for _, place in ipairs(entry[3]) do
    require_group(place[3])
    redis.call('ZADD', place[3], place[5], place[4])
    touch(place, 'SADD')
  end
end

local function rebuild_set(key, group)
  redis.call('DEL', key)
  for start = 0, redis.call('ZCARD', group) - 1, 1000 do
    local values = {}
    for _, member in ipairs(redis.call('ZRANGE', group, start, start + 999)) do values[#values + 1] = shown(member) end
    redis.call('SADD', key, unpack(values))
  end
end

local function rebuild(place)
  local key, group = place[2], place[3]
  local shape, limit, milliseconds = unpack(shapes[place[1]])
  local size = redis.call('ZCARD', group)
  if size == 0 then
    redis.call('DEL', key)
  elseif shape == 'set' then
    if redis.call('SCARD', key) ~= size then rebuild_set(key, group) end
  else
    redis.call('DEL', key)
    local values = best(group, limit)
    if shape == 'list' then redis.call('RPUSH', key, unpack(values)) end
    if shape == 'array' then redis.call('SET', key, '[' .. table.concat(values, ',') .. ']') end
    if shape == 'first' then redis.call('SET', key, values[1]) end
  end
  redis.call('PEXPIRE', key, milliseconds)
end

for at = 2, #ARGV, 5 do
  local book, ids, id, new = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local documents = cjson.decode(ARGV[at + 4])
  -- What another program made of an entry may be anything.
  pcall(remove, entry_of(redis.call('HGET', book, id)))
  if new == '' then
    for _, document in ipairs(documents) do redis.call('DEL', document[1]) end
    redis.call('HDEL', book, id)
    redis.call('ZREM', ids, id)
  else
    add(cjson.decode(new), documents)
    redis.call('HSET', book, id, new)
    redis.call('ZADD', ids, 0, id)
  end
end
for _, place in pairs(touched) do rebuild(place) end
