-- hf_refuse: the node cannot take a delivery. payload_corrupt is held; otherwise failed or unknown.
-- KEYS   1 tag
-- ARGV   host node incarnation, then items of: delivery epoch verdict(failed|unknown) reason
-- REPLY  log_id, results [[id, ok 1, epoch, state | id, ok 0, code, epoch?, state?, owner?, detail?]...], in order
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT NOT_JOINED SUPERSEDED HOST_RETIRED LEFT
-- ITEMS  DELIVERY_NOT_FOUND STALE_EPOCH NOT_OWNER WRONG_STATE
-- STATES claimed, mirrored -> failed | unknown | held; delivered and idle -> held
do
  hf.register('hf_refuse', { 'allow-oom' }, function(keys, argv)
    return hf.on_items(keys, argv, 'refuse', 4, function(ctx, node, item)
      local delivery, epoch, verdict, reason = item[1], hf.integer(item[2], 'epoch'), item[3], hf.id(item[4], 'reason')
      if verdict ~= 'failed' and verdict ~= 'unknown' then
        hf.refuse('INVALID_ARGUMENT', 'a verdict is failed or unknown, not "' .. tostring(verdict) .. '"')
      end
      hf.delivery_id(delivery)
      return function() return hf.refuse_delivery(ctx, node, delivery, epoch, verdict, reason) end
    end)
  end)
end
