-- Mirror: the node's copy is durable. claimed -> mirrored, by the owner under its epoch.

local FIELDS = { 'state', 'epoch', 'host', 'owner', 'incarnation' }

function hf.mirror(ctx, node, id, epoch)
  local row = hf.read_delivery(ctx, id, FIELDS)
  if not row then return hf.item_refused(id, 'DELIVERY_NOT_FOUND') end
  local code = hf.check_owner(row, node, epoch)
  if code then return hf.item_refused(id, code, row) end
  if row.state == 'mirrored' or row.state == 'delivered' then return hf.item_ok(row) end
  if row.state ~= 'claimed' then return hf.item_refused(id, 'WRONG_STATE', row) end
  hf.write_delivery(ctx, row, 'mirrored', 'mirrored_at', ctx.now)
  return hf.item_ok(row)
end
