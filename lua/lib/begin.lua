-- Begin: opens attempt n under a grant. This is the only place that allows execution.

-- What a begin answers again when it was a begin that failed the delivery.
local FAILED_HERE = { blocked = 'BLOCKED', expired = 'EXPIRED' }

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

local function open_attempt(ctx, node, row, grant)
  local number = row.attempts + 1
  local prefix = 'attempt_' .. number .. '_'
  redis.call('HSET', hf.key.delivery(ctx.tag, row.id), 'attempts', number, 'attempt_status', 'executing',
    prefix .. 'status', 'executing', prefix .. 'grant', grant, prefix .. 'node', node.name,
    prefix .. 'incarnation', node.incarnation, prefix .. 'begun_at', ctx.now)
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

function hf.begin(ctx, node, id, epoch, grant)
  local row = hf.read_delivery(ctx, id)
  if not row then return hf.item_refused(id, 'DELIVERY_NOT_FOUND') end
  if row.state == 'held' then return hf.item_refused(id, 'HELD', row, row.held_reason) end
  local code = hf.check_owner(row, node, epoch)
  if code then return hf.item_refused(id, code, row) end
  if row.state == 'failed' and FAILED_HERE[row.failed_code] then
    return hf.item_refused(id, FAILED_HERE[row.failed_code], row)
  end
  if row.state ~= 'delivered' then return hf.item_refused(id, 'WRONG_STATE', row) end
  local number = hf.attempt_of_grant(ctx, row, grant)
  if number then return repeated(row, number, id) end
  if hf.is_executing(row) then return hf.item_refused(id, 'GRANT_OPEN', row) end
  if hf.is_finished(row) then return hf.item_refused(id, 'ALREADY_SETTLED', row) end
  if row.execute_by and row.execute_by <= ctx.now then
    hf.fail_delivery(ctx, row, 'expired', 'deadline', 'execute_by')
    return hf.item_refused(id, 'EXPIRED', row, 'execute_by')
  end
  local fence = hf.fence_over(ctx, row)
  if fence and fence.kind == 'block' then
    hf.fail_delivery(ctx, row, 'blocked', 'fence', fence.field)
    return hf.item_refused(id, 'BLOCKED', row, fence.field)
  end
  if fence and fence.kind == 'hold' then
    hf.hold_delivery(ctx, row, 'fence', node.name, fence.field)
    return hf.item_refused(id, 'HELD', row, fence.field)
  end
  if fence then return hf.item_refused(id, 'PAUSED', row, fence.field) end
  return open_attempt(ctx, node, row, grant)
end
