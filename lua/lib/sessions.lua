-- Sessions: addressable targets on hosts. The row says who owns one, whether it is open, and whether it comes back.

local ROW = { 'host', 'scope', 'epoch', 'state', 'terminal', 'parent', 'restart_budget', 'crashes', 'close_reason', 'drained',
  'abandoned', 'moving_from', 'move_cursor', 'opened_at', 'closed_at' }
local STATED = { disable = true, removed = true, reload = false, restart = false }
local MOVED_A_CALL = 100
local CHILDREN_A_CALL = 100

-- The row, read once a call; nil for one never seen.
function hf.session(ctx, id)
  ctx.sessions = ctx.sessions or {}
  if ctx.sessions[id] == nil then
    local values = redis.call('HMGET', hf.key.session(ctx.tag, id), unpack(ROW))
    local row = values[1] and { id = id } or false
    if row then
      for at, name in ipairs(ROW) do row[name] = values[at] or '' end
      row.epoch = tonumber(row.epoch) or 0
      row.state = row.state == '' and 'open' or row.state
      row.crashes = tonumber(row.crashes) or 0
      row.restart_budget = tonumber(row.restart_budget) or 0
    end
    ctx.sessions[id] = row
  end
  return ctx.sessions[id] or nil
end

function hf.open_session_row(ctx, id)
  local row = hf.session(ctx, id)
  if not row then hf.refuse('SESSION_NOT_FOUND', 'session ' .. id .. ' was never opened') end
  return row
end

-- What a session that is not open does to a delivery, in the form of a fence; nil while it is open.
function hf.session_gate(ctx, id)
  local row = hf.session(ctx, id)
  if not row or row.state == 'open' then return nil end
  if row.state == 'missing' then
    return { field = 'missing:session:' .. id, kind = 'block', session = id, code = 'target_session_missing' }
  end
  if row.terminal == '1' then
    return { field = 'route_terminal:session:' .. id, kind = 'hold', session = id, reason = 'route_terminal' }
  end
  return { field = 'closed:session:' .. id, kind = 'pause', session = id }
end

-- The host where a delivery belongs now.
function hf.home_of(ctx, row)
  local session = row.session and hf.session(ctx, row.session)
  return session and session.host or row.host
end

function hf.session_reply(ctx, row, ...)
  local reply = {
    'session', row.id, 'host', row.host, 'scope', row.scope, 'epoch', row.epoch, 'state', row.state,
    'terminal', row.terminal, 'reason', row.close_reason, 'crashes', row.crashes, 'restart_budget', row.restart_budget,
    'log_id', hf.last_log_id(ctx),
  }
  for _, word in ipairs({ ... }) do reply[#reply + 1] = word end
  return reply
end

local function write(ctx, row, ...)
  redis.call('HSET', hf.key.session(ctx.tag, row.id), ...)
end

-- Deliveries that a terminal close held, and lanes that a closed session parked, go on.
local function go_on(ctx, row, actor)
  hf.requeue_held_by(ctx, 'route_terminal:session:' .. row.id, actor)
  hf.ring(ctx, row.host, 'open_session')
end

-- Opens, or opens again under a new epoch. Only the owner host may; only an operator after it was missing.
function hf.open_session(ctx, call)
  local row = hf.session(ctx, call.id)
  if row and row.host ~= call.host then
    hf.refuse('SESSION_ELSEWHERE', 'session ' .. call.id .. ' is owned by host ' .. row.host .. ', not by ' .. call.host)
  end
  if hf.is_retired(ctx, call.host) then
    hf.refuse('HOST_RETIRED', 'host ' .. call.host .. ' is retired; sessions of it are rehomed, not opened')
  end
  if row and row.scope ~= call.scope then
    hf.refuse('SCOPE_MISMATCH', 'session ' .. call.id .. ' has scope ' .. row.scope .. ', not ' .. call.scope)
  end
  if row and row.state == 'missing' and not call.operator then
    hf.refuse('SESSION_MISSING', 'session ' .. call.id .. ' was reported missing; an operator opens it again')
  end
  if call.parent == call.id then
    hf.refuse('INVALID_ARGUMENT', 'session ' .. call.id .. ' cannot be its own parent')
  end
  if row and call.parent and row.parent ~= call.parent then
    hf.refuse('INVALID_ARGUMENT', 'session ' .. call.id .. ' has parent "' .. row.parent .. '", which is stated at its first opening')
  end
  if not row then
    row = { id = call.id, host = call.host, scope = call.scope, epoch = 0, crashes = 0, restart_budget = 0, terminal = '',
      close_reason = '', parent = '', state = 'none' }
    ctx.sessions[call.id] = row
    redis.call('ZADD', hf.key.sessions(ctx.tag), ctx.now, call.id)
    hf.register_host(ctx, call.host, redis.call('HEXISTS', hf.key.host(ctx.tag, call.host), 'first_seen_at') == 1)
    if call.parent then
      row.parent = call.parent
      redis.call('SADD', hf.key.children(ctx.tag, call.parent), call.id)
      write(ctx, row, 'parent', call.parent)
    end
  end
  -- An operator who brings back what would not have come back starts the count of crashes over.
  if call.operator and (row.terminal == '1' or row.state == 'missing') then row.crashes = 0 end
  local from = row.state
  row.epoch, row.state, row.terminal, row.close_reason = hf.next_epoch(ctx, row.epoch), 'open', '', ''
  row.restart_budget = call.restart_budget or row.restart_budget
  write(ctx, row, 'host', row.host, 'scope', row.scope, 'epoch', row.epoch, 'state', 'open', 'opened_at', ctx.now,
    'opened_by', call.actor, 'restart_budget', row.restart_budget, 'crashes', row.crashes)
  redis.call('HDEL', hf.key.session(ctx.tag, row.id), 'terminal', 'close_reason', 'drained', 'abandoned', 'closed_at',
    'closed_by', 'missing_at', 'missing_attempt')
  go_on(ctx, row, call.actor)
  hf.note_move(ctx, 'session:' .. hf.escape(row.id), from, 'open')
  hf.finish(ctx, 'open_session', call.actor)
  return hf.session_reply(ctx, row)
end

-- Whether the session comes back without an operator. For a crash the row decides: the budget is looked at
-- before this crash consumes one.
local function terminal_of(row, call)
  if call.reason == 'crash' then
    if call.terminal ~= nil then
      hf.refuse('INVALID_ARGUMENT', 'for a crash terminal is left out: the restart budget on the row decides')
    end
    return row.crashes >= row.restart_budget
  end
  local stated = STATED[call.reason]
  if stated == nil then
    hf.refuse('INVALID_ARGUMENT', 'a reason is disable, removed, reload, restart or crash, not "' .. call.reason .. '"')
  end
  if call.terminal ~= stated then
    hf.refuse('INVALID_ARGUMENT', 'terminal is ' .. tostring(stated) .. ' for ' .. call.reason)
  end
  return stated
end

-- Closes under the epoch that opening returned: a delayed close of an earlier owner changes nothing.
function hf.close_session(ctx, call)
  local row = hf.open_session_row(ctx, call.id)
  if row.epoch ~= call.epoch then
    hf.refuse('STALE_EPOCH', 'session ' .. row.id .. ' is at epoch ' .. row.epoch .. ', this close is of epoch ' .. call.epoch)
  end
  if row.state == 'closed' then return hf.session_reply(ctx, row, 'again', 1) end
  if row.state == 'missing' then
    hf.refuse('SESSION_MISSING', 'session ' .. row.id .. ' was reported missing; it is not open')
  end
  local terminal = terminal_of(row, call)
  if call.reason == 'crash' and not terminal then row.crashes = row.crashes + 1 end
  row.state, row.terminal, row.close_reason = 'closed', terminal and '1' or '0', call.reason
  write(ctx, row, 'state', 'closed', 'terminal', row.terminal, 'close_reason', call.reason, 'drained', call.drained and 1 or 0,
    'abandoned', call.abandoned, 'closed_at', ctx.now, 'closed_by', call.actor, 'crashes', row.crashes)
  hf.note_move(ctx, 'session:' .. hf.escape(row.id), 'open', terminal and 'terminal' or 'closed')
  hf.finish(ctx, 'close_session', call.actor, { 'reason', call.reason })
  return hf.session_reply(ctx, row)
end

-- An outcome says that the target will never answer: said under the present epoch, it marks the session.
function hf.session_reported_missing(ctx, row, attempt_id, session_epoch)
  local session = row.session and hf.session(ctx, row.session)
  if not session or session.state == 'missing' or session.epoch ~= session_epoch then return end
  local from = session.state
  session.state = 'missing'
  write(ctx, session, 'state', 'missing', 'missing_at', ctx.now, 'missing_attempt', attempt_id)
  hf.note_move(ctx, 'session:' .. hf.escape(session.id), from, 'missing')
end

-- Rehoming

local function is_fresh(ctx, node)
  return node and node.state ~= 'left' and ctx.now - node.heartbeat_at < hf.setting(ctx, 'stale_after_ms') or false
end

-- Whether a node's process may still act: fresh, or nobody is judged at present.
local function may_live(ctx, node)
  return node and node.state ~= 'left' and (is_fresh(ctx, node) or not hf.may_judge(ctx)) or false
end

local function serves(ctx, node, scope)
  local text = redis.call('HGET', hf.key.node(ctx.tag, node.host, node.id), 'scopes') or ''
  local parsed, scopes = pcall(cjson.decode, text)
  if not parsed or type(scopes) ~= 'table' then return false end
  for _, each in ipairs(scopes) do
    if each == scope then return true end
  end
  return false
end

-- Whether a host has live nodes, and one that is registered for the scope.
function hf.host_serves(ctx, host, scope)
  local live = false
  for _, field in ipairs(redis.call('HKEYS', hf.key.host(ctx.tag, host))) do
    local id = string.match(field, '^node:(.+)$')
    local node = id and hf.read_node(ctx, host, id)
    if is_fresh(ctx, node) then
      live = true
      if serves(ctx, node, scope) then return true, true end
    end
  end
  return live, false
end

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

-- Whether the process that began the open attempt of a delivery may still act on it.
function hf.executor_lives(ctx, row)
  local prefix = 'attempt_' .. row.attempts
  local begun = redis.call('HMGET', hf.key.delivery(ctx.tag, row.id), prefix .. '_node', prefix .. '_incarnation',
    prefix .. '_ended_at')
  if begun[3] then return false end
  local host, id = string.match(begun[1] or '', '^([^/]+)/(.+)$')
  local node = host and hf.read_node(ctx, host, id)
  return node and node.incarnation == tonumber(begun[2]) and may_live(ctx, node) or false
end

-- Flips the owner and owes the moves.
local function flip(ctx, row, to, actor, reason)
  local from = row.host
  row.host, row.epoch, row.moving_from, row.move_cursor = to, hf.next_epoch(ctx, row.epoch), from, '0'
  write(ctx, row, 'host', to, 'epoch', row.epoch, 'moving_from', from, 'move_cursor', '0', 'rehomed_at', ctx.now,
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
  write(ctx, row, 'move_cursor', row.move_cursor)
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

local HOSTS_LOOKED_AT = 50

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
