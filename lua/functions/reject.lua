-- hf_reject: a held delivery: it failed, by decision.
-- KEYS   1 tag
-- ARGV   delivery actor reason
-- REPLY  id, state, epoch, log_id
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT DELIVERY_NOT_FOUND NOT_HELD
-- STATES held -> failed
do
  hf.register('hf_reject', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local delivery, actor, reason = argv[1], hf.text(argv[2], 'actor'), hf.text(argv[3], 'reason')
    local row = hf.open_held(ctx, delivery)
    hf.fail_delivery(ctx, row, 'rejected', actor, reason)
    hf.finish(ctx, 'reject', actor, { 'reason', reason })
    return hf.operator_reply(ctx, row)
  end)
end
