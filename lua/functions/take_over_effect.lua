-- hf_take_over_effect: from an executor that may be gone, on a stated basis: compare-and-set on epoch and started_at.
-- KEYS   1 tag
-- ARGV   effect payload_hash executor grant basis(probe|idempotent) epoch started_at time_limit_ms('' for none)
-- REPLY  kind claimed|refused, code? (STALE_EPOCH TOO_YOUNG NOT_RECOVERABLE), detail?, and the row as claim answers it
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT PAYLOAD_MISMATCH EFFECT_NOT_FOUND NOT_ATTESTED
-- STATES executing -> executing under a new epoch
do
  hf.register('hf_take_over_effect', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    hf.require_attested(ctx)
    return hf.take_over_effect(ctx, {
      id = hf.id(argv[1], 'effect'), payload_hash = hf.hash(argv[2], 'payload_hash'), executor = hf.id(argv[3], 'executor'),
      grant = hf.word(argv[4], 'grant'), basis = argv[5] or '', epoch = hf.integer(argv[6], 'epoch'),
      started_at = hf.integer(argv[7], 'started_at'), time_limit_ms = hf.optional_integer(argv[8], 'time_limit_ms'),
    })
  end)
end
