-- hf_release: a held delivery: back to the queue with clean counters; it passes the holds that stand now, once.
-- KEYS   1 tag
-- ARGV   delivery actor reason
-- REPLY  id, state, epoch, log_id
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT DELIVERY_NOT_FOUND NOT_HELD HOST_RETIRED
-- STATES held -> queued
do
  hf.register('hf_release', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local delivery, actor, reason = argv[1], hf.text(argv[2], 'actor'), hf.text(argv[3], 'reason')
    local row = hf.open_held(ctx, delivery)
    hf.release(ctx, row, actor, reason)
    hf.finish(ctx, 'release', actor, { 'reason', reason })
    return hf.operator_reply(ctx, row)
  end)
end
