-- Ack: the durable handoff receipt. mirrored -> delivered; the entry leaves the stream and the pending list.

local FIELDS = { 'state', 'epoch', 'host', 'owner', 'incarnation', 'entry' }

function hf.ack(ctx, node, id, epoch)
  local row = hf.read_delivery(ctx, id, FIELDS)
  if not row then return hf.item_refused(id, 'DELIVERY_NOT_FOUND') end
  local code = hf.check_owner(row, node, epoch)
  if code then return hf.item_refused(id, code, row) end
  if row.state == 'delivered' then return hf.item_ok(row) end
  if row.state ~= 'mirrored' then return hf.item_refused(id, 'WRONG_STATE', row) end
  hf.leave_stream(ctx, row.host, row.entry)
  hf.await(ctx, row.host, row.id)
  hf.write_delivery(ctx, row, 'delivered', 'delivered_at', ctx.now)
  return hf.item_ok(row)
end
