-- Retention: what was settled longer ago than retention_ms goes, oldest first. A message goes as a whole, with its
-- key; of an effect only the bodies go.

local DAY_MS = 86400000

-- The oldest day of a list kept by days that may hold something due; nil when there is none.
local function oldest_day(ctx, days)
  local found = nil
  for _, day in ipairs(redis.call('SMEMBERS', days)) do
    local number = tonumber(day)
    if number and (not found or number < found) then found = number end
  end
  if not found or found * DAY_MS > ctx.now - hf.setting(ctx, 'retention_ms') then return nil end
  return found
end

local function is_due(ctx, settled_at)
  return settled_at and settled_at <= ctx.now - hf.setting(ctx, 'retention_ms')
end

local function has_outcome(row)
  return row[1] == 'failed' or row[2] == 'done' or row[2] == 'terminal'
end

-- Deletes deliveries of a message, the last first, as far as the slice reaches but one at least: `done`, `more`, or
-- `unsettled` where one of them has no outcome (then none of these goes).
local function prune_deliveries(ctx, id, key, made, pruning)
  local keys, states = {}, {}
  local first = math.max(1, made - math.max(1, pruning.left) + 1)
  pruning.left = pruning.left - (made - first + 1)
  for number = first, made do
    local each = hf.key.delivery(ctx.tag, id .. '.' .. number)
    local row = redis.pcall('HMGET', each, 'state', 'attempt_status')
    if row.err or row[1] and not has_outcome(row) then return 'unsettled' end
    keys[#keys + 1] = each
    if row[1] then
      states[#states + 1] = row[1]
      if row[1] == 'delivered' then states[#states + 1] = 'finished' end
    end
  end
  for _, state in ipairs(states) do hf.count(ctx, state, -1) end
  hf.count(ctx, 'pruned', #keys)
  if #keys > 0 then redis.call('UNLINK', unpack(keys)) end
  pruning.deliveries = pruning.deliveries + #keys
  if first > 1 then redis.call('HSET', key, 'made', first - 1, 'pruned_from', first) end
  return first == 1 and 'done' or 'more'
end

-- The key goes first: nobody is answered with a message that is half gone.
local function prune_key(ctx, id, key)
  if not key then return end
  local idempotency = hf.key.idempotency(ctx.tag, key)
  local known = redis.call('GET', idempotency)
  if known and string.find(known, id .. ' ', 1, true) == 1 then redis.call('UNLINK', idempotency) end
end

-- Answers whether this entry of the list is done with and, where not, whether there is more to do at once. A message
-- that was counted as settled and holds a delivery without outcome is listed anew, and looked at a retention later.
local function prune_message(ctx, id, pruning)
  local key = hf.key.message(ctx.tag, id)
  local row = redis.call('HMGET', key, 'settled_at', 'made', 'key', 'prune_looked_at')
  if not row[1] then return true end
  if not is_due(ctx, math.max(tonumber(row[1]) or 0, tonumber(row[4]) or 0)) then return false, false end
  local came = prune_deliveries(ctx, id, key, tonumber(row[2]) or 0, pruning)
  if came == 'unsettled' then
    redis.call('HSET', key, 'prune_looked_at', ctx.now)
    ctx.settled_messages[#ctx.settled_messages + 1] = id
    return true
  end
  prune_key(ctx, id, row[3])
  if came == 'more' then return false, true end
  redis.call('UNLINK', key, hf.key.payload(ctx.tag, id), hf.key.recipients(ctx.tag, id))
  pruning.messages = pruning.messages + 1
  return true
end

-- As many late ones as effects.lua keeps.
local BODIES = { 'result', 'error_json', 'unknown_json', 'late_1_body', 'late_2_body', 'late_3_body', 'late_4_body', 'late_5_body' }

local function prune_effect(ctx, id, pruning)
  local key = hf.key.effect(ctx.tag, id)
  local row = redis.call('HMGET', key, 'settled_at', 'status')
  if not row[1] or (row[2] ~= 'done' and row[2] ~= 'terminal') then return true end
  if not is_due(ctx, tonumber(row[1])) then return false, false end
  redis.call('HDEL', key, unpack(BODIES))
  redis.call('HSET', key, 'bodies_pruned_at', ctx.now)
  pruning.effects = pruning.effects + 1
  return true
end

-- Walks the oldest day's list while the slice lasts. True when there may be more.
local function prune_list(ctx, days, key_of, pruning, prune_one)
  local day = oldest_day(ctx, days)
  if not day then return false end
  local list = key_of(ctx.tag, day)
  while pruning.left > 0 do
    local id = redis.call('LINDEX', list, 0)
    if not id then
      redis.call('SREM', days, day)
      return true
    end
    pruning.left = pruning.left - 1
    local done, more = prune_one(ctx, id, pruning)
    if not done then return more end
    redis.call('LPOP', list)
  end
  return true
end

function hf.prune(ctx, limit)
  local pruning = { left = limit, messages = 0, deliveries = 0, effects = 0 }
  local more = false
  if hf.may_judge(ctx) then
    more = prune_list(ctx, hf.key.settled_days(ctx.tag), hf.key.settled, pruning, prune_message)
    more = prune_list(ctx, hf.key.settled_effect_days(ctx.tag), hf.key.settled_effects, pruning, prune_effect) or more
  end
  local did = pruning.messages + pruning.deliveries + pruning.effects > 0
  hf.finish(ctx, 'prune', 'retention', did and { 'messages', pruning.messages, 'effects', pruning.effects } or nil)
  return {
    'messages', pruning.messages, 'deliveries', pruning.deliveries, 'effects', pruning.effects, 'more', more and 1 or 0,
  }
end
