-- hf_claim_effect: insert or lose. Exactly one executor may run an effect; whoever loses is told the record.
-- KEYS   1 tag
-- ARGV   effect type payload_hash executor grant time_limit_ms('' for none)
-- REPLY  kind claimed|result|terminal|outcome_unknown, id, status, epoch, started_at, executor, age_ms, log_id, result,
--        error_code, error_json, unknown_reason, takeovers, bodies_pruned_at ('' while they are there), again? (the same grant asked before)
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT PAYLOAD_MISMATCH NOT_ATTESTED ALREADY_SETTLED
-- STATES none, free -> executing; overdue -> unknown list
do
  hf.register('hf_claim_effect', {}, function(keys, argv)
    local ctx = hf.open(keys)
    hf.require_attested(ctx)
    return hf.claim_effect(ctx, {
      id = hf.id(argv[1], 'effect'), effect_type = hf.id(argv[2], 'type'), payload_hash = hf.hash(argv[3], 'payload_hash'),
      executor = hf.id(argv[4], 'executor'), grant = hf.word(argv[5], 'grant'),
      time_limit_ms = hf.optional_integer(argv[6], 'time_limit_ms'),
    })
  end)
end
