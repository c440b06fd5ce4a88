-- Sessions: addressable targets on hosts. The row says who owns one, whether it is open, and whether it comes back.

local ROW = { 'host', 'scope', 'epoch', 'state', 'terminal', 'parent', 'restart_budget', 'crashes', 'close_reason', 'drained',
  'abandoned', 'moving_from', 'move_cursor', 'opened_at', 'closed_at' }
local STATED = { disable = true, removed = true, reload = false, restart = false }

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

function hf.write_session(ctx, row, ...)
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
      hf.write_session(ctx, row, 'parent', call.parent)
    end
  end
  -- An operator who brings back what would not have come back starts the count of crashes over.
  if call.operator and (row.terminal == '1' or row.state == 'missing') then row.crashes = 0 end
  local from = row.state
  row.epoch, row.state, row.terminal, row.close_reason = hf.next_epoch(ctx, row.epoch), 'open', '', ''
  row.restart_budget = call.restart_budget or row.restart_budget
  hf.write_session(ctx, row, 'host', row.host, 'scope', row.scope, 'epoch', row.epoch, 'state', 'open', 'opened_at', ctx.now,
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
  hf.write_session(ctx, row, 'state', 'closed', 'terminal', row.terminal, 'close_reason', call.reason, 'drained', call.drained and 1 or 0,
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
  hf.write_session(ctx, session, 'state', 'missing', 'missing_at', ctx.now, 'missing_attempt', attempt_id)
  hf.note_move(ctx, 'session:' .. hf.escape(session.id), from, 'missing')
end
