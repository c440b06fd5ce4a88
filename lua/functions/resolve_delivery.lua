-- hf_resolve_delivery: an operator's word on a delivery whose copy was in doubt. Irreversible; kept with actor.
-- KEYS   1 tag
-- ARGV   delivery as(queued|failed) evidence actor
-- REPLY  id, state, epoch, log_id
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT DELIVERY_NOT_FOUND NOT_UNKNOWN
-- STATES unknown -> queued | failed
do
  local AS = { queued = true, failed = true }

  hf.register('hf_resolve_delivery', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    if not AS[argv[2]] then hf.refuse('INVALID_ARGUMENT', 'as is queued or failed, not "' .. tostring(argv[2]) .. '"') end
    return hf.resolve_delivery(ctx, {
      id = argv[1], as = argv[2], evidence = hf.text(argv[3], 'evidence'), actor = hf.text(argv[4], 'actor'),
    })
  end)
end
