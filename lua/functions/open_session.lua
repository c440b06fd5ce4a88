-- hf_open_session: a session is addressable at its host from now on. Opening it again begins a new session epoch.
-- KEYS   1 tag
-- ARGV   session host scope restart_budget('' keeps it) parent('' for none) actor operator(0|1)
-- REPLY  session, host, scope, epoch, state, terminal, reason, crashes, restart_budget, log_id
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT SESSION_ELSEWHERE HOST_RETIRED SCOPE_MISMATCH SESSION_MISSING
-- STATES none, closed, missing -> open; what a terminal close held: held -> queued
do
  hf.register('hf_open_session', {}, function(keys, argv)
    local ctx = hf.open(keys)
    return hf.open_session(ctx, {
      id = hf.id(argv[1], 'session'), host = hf.host_id(argv[2]), scope = hf.text(argv[3], 'scope'),
      restart_budget = hf.optional_integer(argv[4], 'restart_budget'), parent = hf.optional_id(argv[5], 'parent'),
      actor = hf.text(argv[6], 'actor'), operator = hf.integer(argv[7] or 0, 'operator') == 1,
    })
  end)
end
