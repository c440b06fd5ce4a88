-- Reconcile messages: a message's row against its deliveries, its key, and what it owes.

local function count_settled(ctx, id, made)
  local settled, missing = 0, 0
  for number = 1, made do
    local row = redis.pcall('HMGET', hf.key.delivery(ctx.tag, id .. '.' .. number), 'state', 'attempt_status')
    if row.err or not row[1] then
      missing = missing + 1
    elseif row[1] == 'failed' or row[2] == 'done' or row[2] == 'terminal' then
      settled = settled + 1
    end
  end
  return settled, missing
end

local function check_owed(ctx, row, found, repair)
  if row.made >= row.recipients or row.pruned_from then return end
  local owed = redis.call('LLEN', hf.key.recipients(ctx.tag, row.id))
  if row.made + owed ~= row.recipients then
    hf.note(found, 'fan_out_contradicts', row.made .. ' of ' .. row.recipients .. ' deliveries made, but ' .. owed .. ' recipients are owed')
  end
  if not hf.usable(ctx, hf.key.obligations(ctx.tag), 'zset', found, repair) then return end
  if not redis.call('ZSCORE', hf.key.obligations(ctx.tag), row.id) then
    hf.note(found, 'unlisted', 'its fan-out is not complete, and the obligations do not list it', repair)
    if repair then redis.call('ZADD', hf.key.obligations(ctx.tag), ctx.now, row.id) end
  end
end

-- A settled message is in the list of its day, by which retention finds it.
local function check_retention(ctx, row, found, repair, relist)
  local day = math.floor(row.settled_at / 86400000)
  local list = hf.key.settled(ctx.tag, day)
  if not hf.usable(ctx, list, 'list', found, repair) then return end
  if relist then
    -- Listed twice is harmless: the second time the message is gone.
    hf.note(found, 'retention_list_missing', list .. ' was gone: listed anew', true)
    redis.call('RPUSH', list, row.id)
    redis.call('SADD', hf.key.settled_days(ctx.tag), day)
  elseif redis.call('EXISTS', list) == 0 then
    hf.note(found, 'retention_list_missing', list .. ' is gone: retention would never find the message')
  elseif hf.usable(ctx, hf.key.settled_days(ctx.tag), 'set', found, repair)
    and redis.call('SISMEMBER', hf.key.settled_days(ctx.tag), day) == 0 then
    hf.note(found, 'unlisted', 'day ' .. day .. ' is not among the days that retention looks at', repair)
    if repair then redis.call('SADD', hf.key.settled_days(ctx.tag), day) end
  end
end

local function read_message(ctx, id)
  local values = redis.call('HMGET', hf.key.message(ctx.tag, id), 'recipients', 'made', 'settled', 'settled_at', 'key', 'pruned_from')
  if not values[1] or not values[2] then return nil end
  return {
    id = id, recipients = tonumber(values[1]), made = tonumber(values[2]), settled = tonumber(values[3]) or 0,
    settled_at = tonumber(values[4]), key = values[5], pruned_from = values[6],
  }
end

-- Answers what was found, and how many deliveries the message still owes.
function hf.reconcile_message(ctx, id, repair, relist)
  local found = {}
  local key = hf.key.message(ctx.tag, id)
  local type_found = redis.call('TYPE', key)['ok']
  if type_found ~= 'hash' then
    if type_found ~= 'none' then hf.note(found, 'row_damaged', 'its row is a ' .. type_found .. ', not a hash') end
    return found, 0
  end
  local row = read_message(ctx, id)
  if not row then
    hf.note(found, 'row_damaged', 'its row lacks what decides')
    return found, 0
  end
  check_owed(ctx, row, found, repair)
  if row.key and not row.pruned_from and redis.call('EXISTS', hf.key.idempotency(ctx.tag, row.key)) == 0 then
    hf.note(found, 'key_missing', 'its key "' .. row.key .. '" is gone: the same key would be a new message')
  end
  local settled, missing = count_settled(ctx, id, row.made)
  if missing > 0 then hf.note(found, 'row_missing', missing .. ' of its deliveries have no row') end
  local is_settled = missing == 0 and row.made >= row.recipients and settled >= row.recipients
  if not row.pruned_from and (settled ~= row.settled or (is_settled and not row.settled_at)) and row.recipients > 0 then
    hf.note(found, 'miscounted', 'counted ' .. row.settled .. ' settled deliveries, there are ' .. settled, repair)
    if repair then
      redis.call('HSET', key, 'settled', settled)
      if is_settled and not row.settled_at then
        row.settled_at = ctx.now
        redis.call('HSET', key, 'settled_at', ctx.now)
        ctx.settled_messages[#ctx.settled_messages + 1] = id
      end
    end
  elseif row.settled_at then
    check_retention(ctx, row, found, repair, relist)
  end
  return found, math.max(0, row.recipients - row.made)
end
