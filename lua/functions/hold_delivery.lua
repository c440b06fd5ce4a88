-- hf_hold_delivery: an operator takes an idle delivery aside; its owner's next step is refused.
-- KEYS   1 tag
-- ARGV   delivery actor reason
-- REPLY  id, state, epoch, log_id
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT DELIVERY_NOT_FOUND EXECUTING ALREADY_SETTLED WRONG_STATE
-- STATES queued to delivered while idle, held -> held
do
  hf.register('hf_hold_delivery', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local delivery, actor, reason = argv[1], hf.text(argv[2], 'actor'), hf.text(argv[3], 'reason')
    local row = hf.open_idle(ctx, delivery)
    hf.leave_lane(ctx, row)
    hf.hold_delivery(ctx, row, reason, actor)
    hf.finish(ctx, 'hold_delivery', actor, { 'reason', reason })
    return hf.operator_reply(ctx, row)
  end)
end
