-- hf_cancel: an operator ends an idle delivery.
-- KEYS   1 tag
-- ARGV   delivery actor reason
-- REPLY  id, state, epoch, log_id
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT DELIVERY_NOT_FOUND EXECUTING ALREADY_SETTLED WRONG_STATE
-- STATES queued to delivered while idle, held -> failed
do
  hf.register('hf_cancel', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local delivery, actor, reason = argv[1], hf.text(argv[2], 'actor'), hf.text(argv[3], 'reason')
    local row = hf.open_idle(ctx, delivery)
    hf.cancel(ctx, row, actor, reason)
    hf.finish(ctx, 'cancel', actor, { 'reason', reason })
    return hf.operator_reply(ctx, row)
  end)
end
