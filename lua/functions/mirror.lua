-- hf_mirror: the node's copy of each delivery is durable.
-- KEYS   1 tag
-- ARGV   host node incarnation, then items of: delivery epoch
-- REPLY  log_id, results [[id, ok 1, epoch, state | id, ok 0, code, epoch?, state?, owner?, detail?]...], in order
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT NOT_JOINED SUPERSEDED HOST_RETIRED LEFT
-- ITEMS  DELIVERY_NOT_FOUND STALE_EPOCH NOT_OWNER WRONG_STATE
-- STATES claimed -> mirrored
do
  hf.register('hf_mirror', { 'allow-oom' }, function(keys, argv)
    return hf.on_items(keys, argv, 'mirror', 2, function(ctx, node, item)
      local delivery, epoch = hf.delivery_id(item[1]), hf.integer(item[2], 'epoch')
      return function() return hf.mirror(ctx, node, delivery, epoch) end
    end)
  end)
end
