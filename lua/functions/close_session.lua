-- hf_close_session: a session is not addressable any more, for good (terminal) or until it opens again. A repeated
-- close gets the first answer.
-- KEYS   1 tag
-- ARGV   session epoch reason(disable|removed|reload|restart|crash) drained(0|1) abandoned terminal(0|1, '' for a crash) actor
-- REPLY  session, host, scope, epoch, state, terminal, reason, crashes, restart_budget, log_id, again?
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT SESSION_NOT_FOUND STALE_EPOCH SESSION_MISSING
-- STATES open -> closed
do
  local function flag(value, name)
    if value == nil or value == '' then return nil end
    return hf.integer(value, name) == 1
  end

  hf.register('hf_close_session', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    return hf.close_session(ctx, {
      id = hf.id(argv[1], 'session'), epoch = hf.integer(argv[2], 'epoch'), reason = hf.text(argv[3], 'reason'),
      drained = flag(argv[4], 'drained'), abandoned = hf.integer(argv[5] or 0, 'abandoned'), terminal = flag(argv[6], 'terminal'),
      actor = hf.text(argv[7], 'actor'),
    })
  end)
end
