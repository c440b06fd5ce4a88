-- Begin: opens attempt n under a grant. This is the only place that allows execution.

-- What a begin answers again when it was a begin that failed the delivery.
local FAILED_HERE = { blocked = 'BLOCKED', expired = 'EXPIRED', target_session_missing = 'BLOCKED' }

-- Which attempt, if any, was opened under this grant. Bounded by max_redrive.
function hf.attempt_of_grant(ctx, row, grant)
  if row.attempts == 0 then return nil end
  local fields = {}
  for number = 1, row.attempts do fields[number] = 'attempt_' .. number .. '_grant' end
  for number, known in ipairs(redis.call('HMGET', hf.key.delivery(ctx.tag, row.id), unpack(fields))) do
    if known == grant then return number end
  end
  return nil
end

-- Under which opening of its session an attempt was begun, and that it is open.
local function note_session(ctx, row, prefix)
  local session = hf.session(ctx, row.session)
  redis.call('SADD', hf.key.session_attempts(ctx.tag, row.session), row.id)
  if session then redis.call('HSET', hf.key.delivery(ctx.tag, row.id), prefix .. 'session_epoch', session.epoch) end
end

local function open_attempt(ctx, node, row, grant)
  local number = row.attempts + 1
  local prefix = 'attempt_' .. number .. '_'
  hf.write_pending(ctx, row, 'attempts', number, 'attempt_status', 'executing', prefix .. 'status', 'executing',
    prefix .. 'grant', grant, prefix .. 'node', node.name, prefix .. 'incarnation', node.incarnation, prefix .. 'begun_at', ctx.at,
    prefix .. 'epoch', row.epoch)
  if row.session then note_session(ctx, row, prefix) end
  if row.released_at then redis.call('HDEL', hf.key.delivery(ctx.tag, row.id), 'released_at', 'released_holds') end
  row.attempts, row.attempt_status = number, 'executing'
  hf.note_move(ctx, row.id .. '/' .. number, 'idle', 'executing')
  return hf.item_ok(row, 'attempt', number)
end

-- The same grant again: the same answer to the process that holds it, a refusal to anyone else.
local function repeated(row, number, id)
  if number == row.attempts and hf.is_executing(row) then return hf.item_ok(row, 'attempt', number) end
  return hf.item_refused(id, 'ALREADY_SETTLED', row)
end

-- A later process of the node begins again what an earlier one left open, under the same grant: its handler is
-- declared idempotent. Fences and the count of crashes apply; nothing is moved by them while it is open.
local function replay(ctx, node, row, number)
  local home = hf.home_of(ctx, row)
  if home ~= row.host then
    return hf.item_refused(row.id, 'NOT_OWNER', row, 'its session lives on host ' .. home)
  end
  local fence = hf.fence_over(ctx, row)
  if fence then
    local code = fence.kind == 'pause' and 'PAUSED' or fence.kind == 'hold' and 'HELD' or 'BLOCKED'
    return hf.item_refused(row.id, code, row, fence.field)
  end
  local takeovers = row.takeovers + (hf.left_cleanly(ctx, row) and 0 or 1)
  if takeovers >= hf.setting(ctx, 'max_takeovers') then
    return hf.item_refused(row.id, 'TOO_MANY_CRASHES', row, 'max_takeovers is ' .. hf.setting(ctx, 'max_takeovers'))
  end
  local prefix = 'attempt_' .. number .. '_'
  row.epoch, row.incarnation = hf.next_epoch(ctx, row.epoch), node.incarnation
  redis.call('HSET', hf.key.delivery(ctx.tag, row.id), 'epoch', row.epoch, 'incarnation', node.incarnation,
    'takeovers', takeovers, prefix .. 'incarnation', node.incarnation, prefix .. 'replayed_at', ctx.now)
  redis.call('HDEL', hf.key.delivery(ctx.tag, row.id), prefix .. 'unknown_at', prefix .. 'unknown_reason', prefix .. 'ended_at')
  redis.call('ZREM', hf.key.unknown(ctx.tag), row.id .. '/' .. number)
  hf.count(ctx, 'attempt_replays', 1)
  hf.note_move(ctx, row.id .. '/' .. number, 'executing', 'executing')
  return hf.item_ok(row, 'attempt', number, 'replayed', 1)
end

-- A begin by a handler that is declared idempotent: nil unless this grant was begun by this node.
local function begin_again(ctx, node, row, epoch, grant)
  local number = hf.attempt_of_grant(ctx, row, grant)
  if not number then return nil end
  local begun = redis.call('HMGET', hf.key.delivery(ctx.tag, row.id), 'attempt_' .. number .. '_node',
    'attempt_' .. number .. '_replayed_at')
  if begun[1] ~= node.name then return nil end
  if number < row.attempts or not hf.is_executing(row) then return hf.item_refused(row.id, 'ALREADY_SETTLED', row) end
  if row.incarnation == node.incarnation then
    return begun[2] and hf.item_ok(row, 'attempt', number, 'replayed', 1) or nil
  end
  if row.incarnation < node.incarnation and row.epoch == epoch then return replay(ctx, node, row, number) end
  return nil
end

-- Begins what its owner holds as delivered, or says why not. What is pending of the row is written in any case.
function hf.begin_row(ctx, node, row, grant)
  local id = row.id
  local number = hf.attempt_of_grant(ctx, row, grant)
  if number then return repeated(row, number, id) end
  if hf.is_executing(row) then return hf.item_refused(id, 'GRANT_OPEN', row) end
  if hf.is_finished(row) then return hf.item_refused(id, 'ALREADY_SETTLED', row) end
  if row.execute_by and row.execute_by <= ctx.now then
    hf.write_pending(ctx, row)
    hf.fail_delivery(ctx, row, 'expired', 'deadline', 'execute_by')
    return hf.item_refused(id, 'EXPIRED', row, 'execute_by')
  end
  local home = hf.home_of(ctx, row)
  if home ~= row.host then
    hf.write_pending(ctx, row)
    hf.move_delivery(ctx, row, home, node.name)
    return hf.item_refused(id, 'NOT_OWNER', row, 'its session lives on host ' .. home)
  end
  local fence = hf.fence_over(ctx, row)
  if fence and fence.kind ~= 'pause' then
    hf.write_pending(ctx, row)
    hf.stop_by(ctx, row, fence, node.name)
    return hf.item_refused(id, fence.kind == 'block' and 'BLOCKED' or 'HELD', row, fence.field)
  end
  if fence then return hf.item_refused(id, 'PAUSED', row, fence.field) end
  return open_attempt(ctx, node, row, grant)
end

function hf.begin(ctx, node, id, epoch, grant, idempotent)
  local row = hf.read_delivery(ctx, id)
  if not row then return hf.item_refused(id, 'DELIVERY_NOT_FOUND') end
  local again = idempotent and begin_again(ctx, node, row, epoch, grant)
  if again then return again end
  if row.state == 'held' then return hf.item_refused(id, 'HELD', row, row.held_reason) end
  local code = hf.check_owner(row, node, epoch)
  if code then return hf.item_refused(id, code, row) end
  if row.state == 'failed' and FAILED_HERE[row.failed_code] then
    return hf.item_refused(id, FAILED_HERE[row.failed_code], row)
  end
  if row.state ~= 'delivered' then return hf.item_refused(id, 'WRONG_STATE', row) end
  return hf.begin_row(ctx, node, row, grant)
end
