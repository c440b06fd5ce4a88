-- Reconcile: one delivery's row against the indexes that should name it. The row is the truth; what it says is put
-- right in the index. What cannot be put right is only told.

-- The consumer under which an entry is pending: a name, nil, or false where the group is gone.
local function pending_under(ctx, host, entry)
  local found = redis.pcall('XPENDING', hf.key.stream(ctx.tag, host), 'nodes', entry, entry, 1)
  if found.err then
    if string.find(found.err, 'NOGROUP', 1, true) then return false end
    error(found)
  end
  return found[1] and found[1][2] or nil
end

local function is_in_stream(row)
  return row.state == 'queued' or row.state == 'claimed' or row.state == 'mirrored'
end

-- A new entry for a delivery that lost its own.
local function enter_anew(ctx, row)
  row.entry = hf.enqueue(ctx, row.host, row.id)
  redis.call('HSET', hf.key.delivery(ctx.tag, row.id), 'entry', row.entry)
end

local function give_to_owner(ctx, row)
  redis.call('XCLAIM', hf.key.stream(ctx.tag, row.host), 'nodes', row.owner, 0, row.entry, 'FORCE', 'JUSTID')
end

local function check_pending(ctx, row, found, repair)
  local consumer = pending_under(ctx, row.host, row.entry)
  if consumer == false then
    hf.note(found, 'group_missing', 'the group of ' .. hf.key.stream(ctx.tag, row.host) .. ' is gone', repair)
    if not repair then return end
    hf.make_group(ctx, row.host)
    consumer = nil
  end
  if row.state ~= 'queued' and consumer ~= row.owner then
    hf.note(found, 'pending_elsewhere', 'pending under ' .. (consumer or 'nobody') .. ', owner is ' .. row.owner, repair)
    if repair then give_to_owner(ctx, row) end
  elseif row.state == 'queued' and consumer then
    hf.note(found, 'read_unclaimed', 'read by ' .. consumer .. ' and never claimed', repair)
    if repair and row.parked_by then
      redis.call('XACK', hf.key.stream(ctx.tag, row.host), 'nodes', row.entry)
    elseif repair then
      hf.leave_stream(ctx, row.host, row.entry)
      enter_anew(ctx, row)
    end
  end
end

-- The row's entry in its host's stream, and who it is pending under.
function hf.check_entry(ctx, row, found, repair)
  local stream = hf.key.stream(ctx.tag, row.host)
  if not row.entry or not hf.usable(ctx, stream, 'stream', found, repair) then return end
  local entry = redis.call('XRANGE', stream, row.entry, row.entry)
  local is_there = entry[1] and entry[1][2][2] == row.id
  if not is_in_stream(row) then
    if is_there then
      hf.note(found, 'entry_left_over', 'its entry is still in the stream', repair)
      if repair then hf.leave_stream(ctx, row.host, row.entry) end
    end
    return
  end
  if not is_there then
    hf.note(found, 'entry_missing', 'its entry is gone from the stream', repair)
    if not repair then return end
    if redis.call('EXISTS', stream) == 0 then hf.make_group(ctx, row.host) end
    enter_anew(ctx, row)
  end
  check_pending(ctx, row, found, repair)
end

-- Whether stream id `one` stands before `other`.
local function is_before(one, other)
  local ms, sequence = string.match(one, '^(%d+)%-(%d+)$')
  local other_ms, other_sequence = string.match(other, '^(%d+)%-(%d+)$')
  if not ms or not other_ms then return false end
  if ms ~= other_ms then return tonumber(ms) < tonumber(other_ms) end
  return tonumber(sequence) < tonumber(other_sequence)
end

local SEARCHED_AT_MOST = 1000

-- Whether a lane lists a delivery. A long one is not searched: it is in order, so what stands before its head is
-- not in it, and anything else is taken to be.
local function is_listed(ctx, list, row)
  local head = redis.call('LINDEX', list, 0)
  if not head then return false end
  if head == row.id then return true end
  local entry = redis.call('HGET', hf.key.delivery(ctx.tag, head), 'entry')
  if entry and row.entry and is_before(row.entry, entry) then return false end
  return redis.call('LLEN', list) > SEARCHED_AT_MOST or (redis.call('LPOS', list, row.id) and true or false)
end

-- A parked delivery and its lane. Asked of the latest first: what is missing is put at the head.
function hf.check_lane(ctx, row, found, repair)
  if row.state ~= 'queued' or not row.parked_by then return end
  local lane = hf.lane_name(row.conversation, row.session)
  local list, parked = hf.key.lane(ctx.tag, row.host, lane), hf.key.parked(ctx.tag, row.host)
  if not hf.usable(ctx, list, 'list', found, repair) or not hf.usable(ctx, parked, 'zset', found, repair) then return end
  if not is_listed(ctx, list, row) then
    hf.note(found, 'lane_unlisted', 'its lane does not list it', repair)
    if repair then redis.call('LPUSH', list, row.id) end
  end
  if not redis.call('ZSCORE', parked, lane) then
    hf.note(found, 'lane_unparked', 'its lane is not listed as parked', repair)
    if repair then
      redis.call('ZADD', parked, 'NX', ctx.now, lane)
      redis.call('SADD', hf.key.parked_hosts(ctx.tag), row.host)
      hf.ring(ctx, row.host, 'reconcile')
    end
  end
end

-- Membership of a sorted set that the row's state demands.
local function check_listed(ctx, key, member, score, found, repair, what)
  if not hf.usable(ctx, key, 'zset', found, repair) or redis.call('ZSCORE', key, member) then return end
  hf.note(found, 'unlisted', what, repair)
  if repair then redis.call('ZADD', key, score, member) end
end

local function is_unfinished(row)
  return row.state ~= 'failed' and not (row.state == 'delivered' and hf.is_finished(row))
end

local function check_held(ctx, row, found, repair)
  check_listed(ctx, hf.key.held(ctx.tag), row.id, ctx.now, found, repair, 'the held queue does not list it')
  if row.held_fence and row.held_fence ~= '' then
    check_listed(ctx, hf.key.held_by(ctx.tag, row.held_fence), row.id, ctx.now, found, repair,
      'what ' .. row.held_fence .. ' holds does not list it')
    if hf.usable(ctx, hf.key.holding(ctx.tag), 'set', found, repair)
      and redis.call('SISMEMBER', hf.key.holding(ctx.tag), row.held_fence) == 0 then
      hf.note(found, 'unlisted', row.held_fence .. ' is not among the holds that keep something', repair)
      if repair then redis.call('SADD', hf.key.holding(ctx.tag), row.held_fence) end
    end
  end
end

local function check_session(ctx, row, found, repair)
  if not is_unfinished(row) then return end
  if not hf.session(ctx, row.session) then
    hf.note(found, 'row_missing', 'the row of session ' .. row.session .. ' is gone')
    return
  end
  local list = hf.key.session_deliveries(ctx.tag, row.session)
  if not hf.usable(ctx, list, 'zset', found, repair) then return end
  if not redis.call('ZSCORE', list, row.id) then
    hf.note(found, 'unlisted', 'session ' .. row.session .. ' does not list it', repair)
    if repair then
      redis.call('ZADD', list, redis.call('HINCRBY', hf.key.session(ctx.tag, row.session), 'deliveries_made', 1), row.id)
    end
  end
  if hf.is_executing(row) and hf.usable(ctx, hf.key.session_attempts(ctx.tag, row.session), 'set', found, repair)
    and redis.call('SISMEMBER', hf.key.session_attempts(ctx.tag, row.session), row.id) == 0 then
    hf.note(found, 'unlisted', 'session ' .. row.session .. ' does not list its open attempt', repair)
    if repair then redis.call('SADD', hf.key.session_attempts(ctx.tag, row.session), row.id) end
  end
end

local function check_host(ctx, row, found, repair)
  ctx.known_hosts = ctx.known_hosts or {}
  if ctx.known_hosts[row.host] or not hf.usable(ctx, hf.key.hosts(ctx.tag), 'set', found, repair)
    or not hf.usable(ctx, hf.key.host(ctx.tag, row.host), 'hash', found, repair) then return end
  ctx.known_hosts[row.host] = true
  if redis.call('SISMEMBER', hf.key.hosts(ctx.tag), row.host) == 1
    and redis.call('HEXISTS', hf.key.host(ctx.tag, row.host), 'first_seen_at') == 1 then return end
  hf.note(found, 'unlisted', 'host ' .. row.host .. ' is not registered', repair)
  if repair then hf.register_host(ctx, row.host, false) end
end

local function check_message(ctx, row, found)
  if redis.call('EXISTS', hf.key.message(ctx.tag, row.message)) == 0 then hf.note(found, 'row_missing', 'the row of its message is gone') end
  if is_unfinished(row) and redis.call('EXISTS', hf.key.payload(ctx.tag, row.message)) == 0 then
    hf.note(found, 'payload_missing', 'the payload of its message is gone')
  end
end

local function check_attempt(ctx, row, found, repair)
  local unknown_at = redis.call('HGET', hf.key.delivery(ctx.tag, row.id), 'attempt_' .. row.attempts .. '_unknown_at')
  if unknown_at then
    check_listed(ctx, hf.key.unknown(ctx.tag), row.id .. '/' .. row.attempts, unknown_at, found, repair,
      'the unknown list does not name its attempt')
  end
end

-- Everything that should name a delivery. Answers the row (nil where there is none) and what was found.
function hf.reconcile(ctx, id, repair, lanes)
  local found = {}
  local key = hf.key.delivery(ctx.tag, id)
  local type_found = redis.call('TYPE', key)['ok']
  if type_found ~= 'hash' then
    if type_found ~= 'none' then hf.note(found, 'row_damaged', 'its row is a ' .. type_found .. ', not a hash') end
    return nil, found
  end
  local row = hf.read_delivery(ctx, id)
  if not row then
    hf.note(found, 'row_damaged', 'its row lacks what decides')
    return nil, found
  end
  check_host(ctx, row, found, repair)
  check_message(ctx, row, found)
  hf.check_entry(ctx, row, found, repair)
  if lanes then hf.check_lane(ctx, row, found, repair) end
  if row.state == 'delivered' and not hf.is_finished(row) then
    check_listed(ctx, hf.key.awaiting(ctx.tag, row.host), id, ctx.now, found, repair, 'its host does not await it')
  elseif row.state == 'held' then
    check_held(ctx, row, found, repair)
  elseif row.state == 'unknown' then
    check_listed(ctx, hf.key.unknown(ctx.tag), id, ctx.now, found, repair, 'the unknown list does not name it')
  end
  if hf.is_executing(row) then check_attempt(ctx, row, found, repair) end
  if row.session then check_session(ctx, row, found, repair) end
  return row, found
end
