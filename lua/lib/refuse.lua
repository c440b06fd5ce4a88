-- Refuse: the node proved that it cannot take a delivery, or cannot tell whether its copy is good.

-- `verdict`: failed or unknown; `payload_corrupt` is always held, so that someone looks at it.
function hf.refuse_delivery(ctx, node, id, epoch, verdict, reason)
  local row = hf.read_delivery(ctx, id)
  if not row then return hf.item_refused(id, 'DELIVERY_NOT_FOUND') end
  if row.state == 'held' and row.held_reason == reason and row.held_by == node.name and row.epoch > epoch then return hf.item_ok(row) end
  local code = hf.check_owner(row, node, epoch)
  if code then return hf.item_refused(id, code, row) end
  if (row.state == 'failed' or row.state == 'unknown') and row.state == verdict then return hf.item_ok(row) end
  local before_handoff = row.state == 'claimed' or row.state == 'mirrored'
  local idle = row.state == 'delivered' and not hf.is_executing(row) and not hf.is_finished(row)
  if reason == 'payload_corrupt' and (before_handoff or idle) then
    hf.hold_delivery(ctx, row, reason, node.name)
  elseif before_handoff and verdict == 'failed' then
    hf.fail_delivery(ctx, row, reason, node.name)
  elseif before_handoff then
    hf.unlist(ctx, row)
    hf.write_delivery(ctx, row, 'unknown', 'unknown_at', ctx.now, 'unknown_reason', reason)
    redis.call('ZADD', hf.key.unknown(ctx.tag), ctx.now, row.id)
  else
    return hf.item_refused(id, 'WRONG_STATE', row)
  end
  return hf.item_ok(row)
end
