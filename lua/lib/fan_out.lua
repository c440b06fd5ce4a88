-- Fan-out: the deliveries of a message, one per recipient. What is not made at once is owed: a list names it, and an
-- obligation stands until it is made.

-- A host that was retired while a fan-out was under way: its deliveries are made, and held.
local function hold_where_retired(ctx, made)
  for _, delivery in ipairs(made) do
    if hf.is_retired(ctx, delivery[4]) then
      hf.hold_delivery(ctx, hf.read_delivery(ctx, delivery[2]), 'retired', 'fan_out')
      delivery[8] = 'held'
    end
  end
end

-- When a delivery is to be looked at, should nobody claim or begin it before; nil without a deadline.
local function first_deadline(header)
  local deliver_by, execute_by = tonumber(header.deliver_by), tonumber(header.execute_by)
  return deliver_by and execute_by and math.min(deliver_by, execute_by) or deliver_by or execute_by
end

-- Refuses before anything is written where a list that a delivery goes into is none.
function hf.check_lists(ctx, header, recipients, most)
  if header.deliver_by or header.execute_by then hf.expect_type(hf.key.deadlines(ctx.tag), 'zset') end
  for at = 1, most do
    local _, session = hf.route(ctx, recipients[at])
    if session then hf.expect_type(hf.key.session_deliveries(ctx.tag, session), 'zset') end
  end
end

local function delivery_id(message, number) return message .. '.' .. number end

local function is_made(ctx, message, number)
  return redis.call('EXISTS', hf.key.delivery(ctx.tag, delivery_id(message, number))) == 1
end

-- Makes deliveries number `first` and on, one per recipient; answers them for the reply.
function hf.make_deliveries(ctx, message, header, recipients, first)
  local made = {}
  for at, recipient in ipairs(recipients) do
    local host, session = hf.route(ctx, recipient)
    local known = hf.route_host(ctx, host)
    hf.register_host(ctx, host, known.known)
    if not known.group_made then hf.make_group(ctx, host) end
    known.known, known.group_made = true, true
    local id = delivery_id(message, first + at - 1)
    local entry = hf.enqueue(ctx, host, id)
    local row = {
      'HSET', hf.key.delivery(ctx.tag, id), 'state', 'queued', 'epoch', '0', 'host', host, 'entry', entry,
      'conversation', header.conversation, 'attempts', '0', 'queued_at', ctx.at,
    }
    if header.deliver_by then
      row[#row + 1] = 'deliver_by'
      row[#row + 1] = header.deliver_by
    end
    if header.execute_by then
      row[#row + 1] = 'execute_by'
      row[#row + 1] = header.execute_by
    end
    if session then
      row[#row + 1] = 'session'
      row[#row + 1] = session
    end
    redis.call(unpack(row))
    hf.count(ctx, 'queued', 1)
    local deadline = first_deadline(header)
    if deadline then redis.call('ZADD', hf.key.deadlines(ctx.tag), deadline, id) end
    if session then
      local place = redis.call('HINCRBY', hf.key.session(ctx.tag, session), 'deliveries_made', 1)
      redis.call('ZADD', hf.key.session_deliveries(ctx.tag, session), place, id)
    end
    made[at] = { 'id', id, 'host', host, 'session', session or '', 'state', 'queued' }
  end
  hold_where_retired(ctx, made)
  return made
end

-- What a message owes beyond its first deliveries is named by a list, and its obligation.
function hf.owe_the_rest(ctx, id, recipients, inline)
  for first = inline + 1, #recipients, 1000 do
    redis.call('RPUSH', hf.key.recipients(ctx.tag, id), unpack(recipients, first, math.min(first + 999, #recipients)))
  end
  redis.call('ZADD', hf.key.obligations(ctx.tag), ctx.at, id)
end

-- What a failed write left out is owed: a function that fails is not undone, and the key stands.
function hf.owe_what_is_not_made(ctx, id, item)
  local made = 0
  while made < item.inline and is_made(ctx, id, made + 1) do made = made + 1 end
  redis.call('HSET', hf.key.message(ctx.tag, id), 'made', made)
  redis.call('DEL', hf.key.recipients(ctx.tag, id))
  hf.owe_the_rest(ctx, id, item.recipients, made)
end

-- The next chunk of what a message still owes. Harmless to repeat.
function hf.fan_out(ctx, id, chunk)
  local key = hf.key.message(ctx.tag, id)
  local row = redis.call('HMGET', key, 'conversation', 'deliver_by', 'execute_by', 'recipients', 'made', 'sender')
  if not row[1] then hf.refuse('MESSAGE_NOT_FOUND', 'no message ' .. id) end
  local header = { conversation = row[1], deliver_by = row[2] or nil, execute_by = row[3] or nil }
  local total, made_before = tonumber(row[4]), tonumber(row[5])
  local owed = redis.call('LRANGE', hf.key.recipients(ctx.tag, id), 0, chunk - 1)
  if made_before + #owed < total and #owed < chunk then
    hf.refuse('RECORD_DAMAGED', 'message ' .. id .. ' owes ' .. (total - made_before) .. ' deliveries but names only ' .. #owed)
  end
  for _, recipient in ipairs(owed) do
    hf.check_recipient(recipient)
    hf.route_host(ctx, (hf.route(ctx, recipient)))
  end
  hf.check_lists(ctx, header, owed, #owed)
  -- A call that failed part-way may have made the first of them: they may be executed by now.
  local first = made_before + 1
  while first <= made_before + #owed and is_made(ctx, id, first) do first = first + 1 end
  local made = hf.make_deliveries(ctx, id, header, { unpack(owed, first - made_before) }, first)
  if #owed > 0 then
    redis.call('LTRIM', hf.key.recipients(ctx.tag, id), #owed, -1)
    redis.call('HSET', key, 'made', made_before + #owed)
  end
  if made_before + #owed >= total then redis.call('ZREM', hf.key.obligations(ctx.tag), id) end
  local extra = #owed > 0 and { 'message', id, 'first', made_before + 1, 'last', made_before + #owed } or nil
  hf.finish(ctx, 'fan_out', row[6] or 'hub', extra)
  return {
    'id', id, 'recipients', total, 'made', made_before + #owed, 'log_id', hf.last_log_id(ctx), 'deliveries', made,
  }
end
