-- hf_move: works off what a rehome still owes: the next slice of a session's deliveries. Harmless to repeat.
-- KEYS   1 tag
-- ARGV   session actor
-- REPLY  session, host, scope, epoch, state, terminal, reason, crashes, restart_budget, log_id, more 0|1
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT SESSION_NOT_FOUND
-- STATES as hf_rehome
do
  hf.register('hf_move', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    return hf.move(ctx, hf.id(argv[1], 'session'), hf.text(argv[2], 'actor'))
  end)
end
