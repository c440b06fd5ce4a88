-- hf_resolve_effect: an operator's word on an effect whose outcome is unknown. Irreversible; kept with actor.
-- KEYS   1 tag
-- ARGV   effect as(result|terminal|not_sent) evidence actor force(0|1) result
-- REPLY  kind settled, outcome, and the row as claim answers it
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT EFFECT_NOT_FOUND ALREADY_SETTLED EXECUTING
-- STATES executing -> done | terminal | free
do
  local AS = { result = true, terminal = true, not_sent = true }

  hf.register('hf_resolve_effect', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    if not AS[argv[2]] then hf.refuse('INVALID_ARGUMENT', 'as is result, terminal or not_sent, not "' .. tostring(argv[2]) .. '"') end
    return hf.resolve_effect(ctx, {
      id = hf.id(argv[1], 'effect'), as = argv[2], evidence = hf.text(argv[3], 'evidence'), actor = hf.text(argv[4], 'actor'),
      force = hf.integer(argv[5] or 0, 'force') == 1, result = argv[6] or '',
    })
  end)
end
