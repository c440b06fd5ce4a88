-- hf_settle_effect: how an effect went. Only the grant that holds the row settles it, once.
-- KEYS   1 tag
-- ARGV   effect executor grant epoch kind(result|terminal|not_sent|outcome_unknown) result error_code error_json
-- REPLY  kind settled|refused, outcome?, again?, code? (STALE_EPOCH NOT_OWNER ALREADY_SETTLED), detail?, and the row as
--        claim answers it
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT EFFECT_NOT_FOUND RESULT_TOO_LARGE
-- STATES executing -> done | terminal | free | unknown list
do
  local KINDS = { result = true, terminal = true, not_sent = true, outcome_unknown = true }

  hf.register('hf_settle_effect', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local kind = argv[5]
    if not KINDS[kind] then
      hf.refuse('INVALID_ARGUMENT', 'an outcome is result, terminal, not_sent or outcome_unknown, not "' .. tostring(kind) .. '"')
    end
    return hf.settle_effect(ctx, {
      id = hf.id(argv[1], 'effect'), executor = hf.id(argv[2], 'executor'), grant = hf.word(argv[3], 'grant'),
      epoch = hf.integer(argv[4], 'epoch'), kind = kind, result = kind == 'result' and (argv[6] or '') or '',
      error_code = kind == 'result' and '' or hf.id(argv[7], 'error_code'),
      error_json = kind == 'result' and '' or (argv[8] or ''),
    })
  end)
end
