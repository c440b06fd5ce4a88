-- hf_resolve_attempt: an operator's word on an attempt whose outcome is unknown. Irreversible; kept with actor.
-- KEYS   1 tag
-- ARGV   attempt as(result|terminal|not_sent) evidence actor force(0|1) result
-- REPLY  id, state, epoch, outcome, log_id
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT DELIVERY_NOT_FOUND ATTEMPT_NOT_FOUND ALREADY_SETTLED EXECUTING
-- STATES executing -> done | terminal | not_sent; after not_sent the delivery is queued again, or held
do
  local AS = { result = true, terminal = true, not_sent = true }

  hf.register('hf_resolve_attempt', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    if not AS[argv[2]] then hf.refuse('INVALID_ARGUMENT', 'as is result, terminal or not_sent, not "' .. tostring(argv[2]) .. '"') end
    return hf.resolve_attempt(ctx, {
      id = argv[1], as = argv[2], evidence = hf.text(argv[3], 'evidence'), actor = hf.text(argv[4], 'actor'),
      force = hf.integer(argv[5] or 0, 'force') == 1, result = argv[2] == 'result' and (argv[6] or '') or '',
    })
  end)
end
