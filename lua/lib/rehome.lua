-- Rehoming: a session and its children change their host, and what is not begun goes with them, slice by slice.

local MOVED_A_CALL = 100
local CHILDREN_A_CALL = 100
local HOSTS_LOOKED_AT = 50

local function check_target(ctx, row, to)
  if hf.is_retired(ctx, to) then hf.refuse('HOST_NOT_LIVE', 'host ' .. to .. ' is retired') end
  local live, served = hf.host_serves(ctx, to, row.scope)
  if not live then hf.refuse('HOST_NOT_LIVE', 'host ' .. to .. ' has no live node') end
  if not served then hf.refuse('SCOPE_MISMATCH', 'no live node of host ' .. to .. ' is registered for scope ' .. row.scope) end
end

-- An open attempt of the session whose executor may live; nil when there is none.
local function live_attempt(ctx, row)
  for _, id in ipairs(redis.call('SMEMBERS', hf.key.session_attempts(ctx.tag, row.id))) do
    local delivery = hf.read_delivery(ctx, id)
    if delivery and hf.is_executing(delivery) and hf.executor_lives(ctx, delivery) then
      return id .. '/' .. delivery.attempts .. ' of session ' .. row.id .. ' runs on host ' .. delivery.host
    end
  end
  return nil
end

local function check_executors(ctx, row)
  local attempt = live_attempt(ctx, row)
  if attempt then hf.refuse('EXECUTING', 'attempt ' .. attempt) end
end

-- Flips the owner and owes the moves.
local function flip(ctx, row, to, actor, reason)
  local from = row.host
  row.host, row.epoch, row.moving_from, row.move_cursor = to, hf.next_epoch(ctx, row.epoch), from, '0'
  hf.write_session(ctx, row, 'host', to, 'epoch', row.epoch, 'moving_from', from, 'move_cursor', '0', 'rehomed_at', ctx.now,
    'rehomed_by', actor, 'rehomed_reason', reason, 'rehomed_from', from)
  redis.call('ZADD', hf.key.obligations(ctx.tag), ctx.now, 'session:' .. row.id)
  hf.register_host(ctx, to, redis.call('HEXISTS', hf.key.host(ctx.tag, to), 'first_seen_at') == 1)
  hf.note_move(ctx, 'session:' .. hf.escape(row.id), from, to)
end

-- The session and its children of equal owner and scope, and theirs; nil where they are too many.
local function family_of(ctx, row)
  local family, known = { row }, { [row.id] = true }
  local at = 1
  while family[at] do
    for _, id in ipairs(redis.call('SMEMBERS', hf.key.children(ctx.tag, family[at].id))) do
      local child = not known[id] and hf.session(ctx, id)
      if child and child.host == row.host and child.scope == row.scope then
        if #family > CHILDREN_A_CALL then return nil end
        known[id] = true
        family[#family + 1] = child
      end
    end
    at = at + 1
  end
  return family
end

-- What holds a delivery is its old host: the host is retired, or a hold of this host parked it.
local function held_for_host(row)
  return row.held_reason == 'retired' or row.held_fence == 'hold:host:' .. row.host
end

-- Takes one delivery along; what was begun stays where it ran.
function hf.move_delivery(ctx, row, to, actor)
  if row.host == to or hf.is_finished(row) or row.state == 'failed' or row.state == 'unknown' then return end
  if hf.is_executing(row) then
    if hf.list_unknown(ctx, row, row.attempts, 'rehomed') then
      hf.note_move(ctx, row.id .. '/' .. row.attempts, 'executing', 'unknown')
    end
    return
  end
  hf.leave_lane(ctx, row)
  local from, epoch = row.host, hf.next_epoch(ctx, row.epoch)
  local moved = { 'host', to, 'epoch', epoch, 'rehomed_at', ctx.now, 'rehomed_by', actor, 'rehomed_from', from }
  if row.state == 'held' and not held_for_host(row) then
    hf.write_delivery(ctx, row, 'held', unpack(moved))
  elseif hf.is_retired(ctx, to) then
    hf.hold_delivery(ctx, row, 'retired', actor)
    redis.call('HSET', hf.key.delivery(ctx.tag, row.id), unpack(moved))
  else
    hf.unlist(ctx, row)
    hf.need_group(ctx, to)
    row.entry = hf.enqueue(ctx, to, row.id)
    hf.write_delivery(ctx, row, 'queued', 'entry', row.entry, unpack(moved))
    redis.call('HDEL', hf.key.delivery(ctx.tag, row.id), 'parked_at', 'parked_by')
    row.parked_by = nil
  end
  redis.call('HDEL', hf.key.delivery(ctx.tag, row.id), 'owner', 'incarnation')
  row.host, row.epoch, row.owner, row.incarnation = to, epoch, nil, nil
end

-- Moves up to `most` of a session's deliveries, in their order. True when there may be more, and how many it
-- looked at.
local function move_slice(ctx, row, most, actor)
  local list = hf.key.session_deliveries(ctx.tag, row.id)
  local found = redis.call('ZRANGEBYSCORE', list, '(' .. row.move_cursor, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
  for at = 1, #found, 2 do
    local delivery = hf.read_delivery(ctx, found[at])
    if delivery then hf.move_delivery(ctx, delivery, row.host, actor) end
    row.move_cursor = found[at + 1]
  end
  if #found < 2 * most then
    row.moving_from = ''
    redis.call('HDEL', hf.key.session(ctx.tag, row.id), 'moving_from', 'move_cursor')
    redis.call('ZREM', hf.key.obligations(ctx.tag), 'session:' .. row.id)
    return false, #found / 2
  end
  hf.write_session(ctx, row, 'move_cursor', row.move_cursor)
  return true, most
end

-- Moves a slice of what sessions still owe, one after the other. True when there is more.
local function move_slices(ctx, sessions, actor)
  local left = MOVED_A_CALL
  for _, each in ipairs(sessions) do
    if each.moving_from ~= '' then
      local more, looked = move_slice(ctx, each, left, actor)
      if more then return true end
      left = left - looked
    end
  end
  return false
end

-- Rehome: the first call flips the owner, each call moves a slice. Repeating it completes it, for the whole family.
function hf.rehome(ctx, id, to, actor, reason)
  local row = hf.open_session_row(ctx, id)
  local family = family_of(ctx, row)
  if row.host ~= to then
    check_target(ctx, row, to)
    if not family then
      hf.refuse('TOO_MANY_CHILDREN', 'session ' .. row.id .. ' has more than ' .. CHILDREN_A_CALL .. ' child sessions')
    end
    for _, each in ipairs(family) do check_executors(ctx, each) end
    for _, each in ipairs(family) do flip(ctx, each, to, actor, reason) end
  end
  local more = move_slices(ctx, family or { row }, actor)
  hf.finish(ctx, 'rehome', actor, { 'session', hf.escape(id), 'host', to, 'reason', reason })
  return hf.session_reply(ctx, row, 'more', more and 1 or 0)
end

-- Continues the moves that a rehome owes, as an obligation that anyone may work off.
function hf.move(ctx, id, actor)
  local row = hf.open_session_row(ctx, id)
  local more = move_slices(ctx, { row }, actor)
  if not more then redis.call('ZREM', hf.key.obligations(ctx.tag), 'session:' .. id) end
  hf.finish(ctx, 'move', actor)
  return hf.session_reply(ctx, row, 'more', more and 1 or 0)
end

-- The next host, by latest heartbeat, that serves a scope; nil when none does.
local function other_host(ctx, session)
  for _, name in ipairs(redis.call('ZREVRANGE', hf.key.nodes(ctx.tag), 0, HOSTS_LOOKED_AT - 1)) do
    local host = string.match(name, '^([^/]+)/')
    if host and host ~= session.host and not hf.is_retired(ctx, host) then
      local _, served = hf.host_serves(ctx, host, session.scope)
      if served then return host end
    end
  end
  return nil
end

-- Whether the owner host of a session is gone: retired, or it had nodes and none of them may live.
local function is_host_gone(ctx, host)
  if hf.is_retired(ctx, host) then return true end
  if redis.call('HEXISTS', hf.key.host(ctx.tag, host), 'joined_at') == 0 or not hf.may_judge(ctx) then return false end
  return not hf.host_serves(ctx, host, '')
end

-- Where the owner host is dead or retired, and the setting allows it, the session goes to another host that serves
-- its scope. Nothing moves while something of it may still run. It never refuses: the redrive itself is under way.
function hf.rehome_on_redrive(ctx, session)
  if hf.setting(ctx, 'rehome_on_redrive') == 0 or not is_host_gone(ctx, session.host) then return end
  local to, family = other_host(ctx, session), family_of(ctx, session)
  if not to or not family then return end
  for _, each in ipairs(family) do
    if live_attempt(ctx, each) then return end
  end
  for _, each in ipairs(family) do flip(ctx, each, to, 'redrive', 'its host is gone') end
end

-- The host where a redriven delivery goes: where its session lives, once that has left a host that is gone.
function hf.redrive_home(ctx, row)
  local session = row.session and hf.session(ctx, row.session)
  if session then hf.rehome_on_redrive(ctx, session) end
  return session and session.host or row.host
end
