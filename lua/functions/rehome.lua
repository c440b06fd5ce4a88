-- hf_rehome: a session, and its child sessions of equal owner and scope, live on another host from now on. The first
-- call flips the owner, each call moves a slice of the deliveries. Repeat while `more` is 1; hf_move does as well.
-- KEYS   1 tag
-- ARGV   session host actor reason
-- REPLY  session, host, scope, epoch, state, terminal, reason, crashes, restart_budget, log_id, more 0|1
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT SESSION_NOT_FOUND HOST_NOT_LIVE SCOPE_MISMATCH EXECUTING TOO_MANY_CHILDREN
-- STATES queued to delivered while idle -> queued at the new host; held stays held there; open attempts -> unknown list
do
  hf.register('hf_rehome', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local id, host = hf.id(argv[1], 'session'), hf.host_id(argv[2])
    return hf.rehome(ctx, id, host, hf.text(argv[3], 'actor'), hf.text(argv[4], 'reason'))
  end)
end
