-- Take: mirror, ack and begin in one call, for a node whose copy and grant are durable already. What each step demands
-- is demanded here, in the same order; the row is written once.

local FIELDS = { 'state', 'epoch', 'host', 'owner', 'incarnation', 'entry', 'attempts', 'attempt_status', 'session', 'execute_by', 'released_at' }

-- claimed or mirrored -> delivered, as mirror and ack would. Left pending, to be written with what follows.
local function hand_off(ctx, row)
  local from = row.state
  row.pending = { 'state', 'delivered', 'delivered_at', ctx.at }
  if from == 'claimed' then
    row.pending[5], row.pending[6] = 'mirrored_at', ctx.at
    hf.note_move(ctx, row.id, 'claimed', 'mirrored')
  end
  hf.note_move(ctx, row.id, 'mirrored', 'delivered')
  hf.count(ctx, from, -1)
  hf.count(ctx, 'delivered', 1)
  hf.leave_stream(ctx, row.host, row.entry)
  hf.await(ctx, row.host, row.id)
  row.state = 'delivered'
end

-- Answers the handoff and, with a grant, what its begin came to.
function hf.take(ctx, node, id, epoch, grant)
  local row = hf.read_delivery(ctx, id, FIELDS)
  if not row then return hf.item_refused(id, 'DELIVERY_NOT_FOUND') end
  local code = hf.check_owner(row, node, epoch)
  if code then return hf.item_refused(id, code, row) end
  if row.state == 'claimed' or row.state == 'mirrored' then
    hand_off(ctx, row)
  elseif row.state ~= 'delivered' then
    return hf.item_refused(id, 'WRONG_STATE', row)
  end
  local taken = hf.item_ok(row)
  local begun = grant and hf.begin_row(ctx, node, row, grant)
  hf.write_pending(ctx, row)
  return taken, begun
end
