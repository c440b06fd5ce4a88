-- Tally: what the counts say and what the indexes hold, of one moment. A few commands for each host.

local STATES = { 'queued', 'claimed', 'mirrored', 'delivered', 'held', 'failed', 'unknown' }

local function size(key, type_name, command)
  local found = redis.call('TYPE', key)['ok']
  return found == type_name and redis.call(command, key) or 0
end

local function owed(ctx)
  local sum = 0
  if redis.call('TYPE', hf.key.obligations(ctx.tag))['ok'] ~= 'zset' then return 0 end
  for _, id in ipairs(redis.call('ZRANGE', hf.key.obligations(ctx.tag), 0, -1)) do
    if string.find(id, '^%d+%-%d+$') then
      local row = redis.call('HMGET', hf.key.message(ctx.tag, id), 'recipients', 'made')
      sum = sum + math.max(0, (tonumber(row[1]) or 0) - (tonumber(row[2]) or 0))
    end
  end
  return sum
end

local function pending_of(stream)
  local summary = redis.pcall('XPENDING', stream, 'nodes')
  return not summary.err and summary[1] or 0
end

function hf.tally(ctx)
  local counts = {}
  if redis.call('TYPE', hf.key.counts(ctx.tag))['ok'] == 'hash' then
    local fields = redis.call('HGETALL', hf.key.counts(ctx.tag))
    for at = 1, #fields, 2 do counts[fields[at]] = tonumber(fields[at + 1]) or 0 end
  end
  local streams, pending, awaiting = 0, 0, 0
  if redis.call('TYPE', hf.key.hosts(ctx.tag))['ok'] == 'set' then
    for _, host in ipairs(redis.call('SMEMBERS', hf.key.hosts(ctx.tag))) do
      local stream = hf.key.stream(ctx.tag, host)
      local entries = size(stream, 'stream', 'XLEN')
      streams = streams + entries
      if entries > 0 then pending = pending + pending_of(stream) end
      awaiting = awaiting + size(hf.key.awaiting(ctx.tag, host), 'zset', 'ZCARD')
    end
  end
  local reply = {
    'log_id', hf.last_log_id(ctx), 'recipients', counts.recipients or 0, 'pruned', counts.pruned or 0,
    'finished', counts.finished or 0, 'owed', owed(ctx), 'streams', streams, 'pending', pending, 'awaiting', awaiting,
    'held_listed', size(hf.key.held(ctx.tag), 'zset', 'ZCARD'),
  }
  for _, state in ipairs(STATES) do
    reply[#reply + 1] = state
    reply[#reply + 1] = counts[state] or 0
  end
  return reply
end

-- Sets the counts to what a walk over the rows found, if nothing has moved since it began.
function hf.recount(ctx, log_id, counted)
  local last = redis.call('XREVRANGE', hf.key.log(ctx.tag), '+', '-', 'COUNT', 1)
  if (last[1] and last[1][1] or '0-0') ~= log_id then return false end
  local key = hf.key.counts(ctx.tag)
  hf.usable(ctx, key, 'hash', {}, true)
  local changed = {}
  for name, number in pairs(counted) do
    if (tonumber(redis.call('HGET', key, name)) or 0) ~= number then
      redis.call('HSET', key, name, number)
      changed[#changed + 1] = name .. '=' .. number
    end
  end
  table.sort(changed)
  hf.finish(ctx, 'recount', 'sweep', #changed > 0 and { 'counts', table.concat(changed, ' ') } or nil)
  return true
end
