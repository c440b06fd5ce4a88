-- hf_lift: takes a fence away and wakes the hosts where it parked something.
-- KEYS   1 tag
-- ARGV   kind(pause|hold|block) scope actor
-- REPLY  fence, reason (as it stood), rung (hosts woken), left (held ones that the next claims requeue), log_id
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT FENCE_NOT_FOUND
-- STATES what a hold parked: held -> queued; what a pause parked is served by the next claims
do
  local RUNG_AT_MOST = 2000 -- hosts beyond it look by themselves within seconds

  local function ring_parked(ctx)
    local rung = 0
    for _, host in ipairs(redis.call('SRANDMEMBER', hf.key.parked_hosts(ctx.tag), RUNG_AT_MOST)) do
      hf.ring(ctx, host, 'lift')
      rung = rung + 1
    end
    return rung
  end

  hf.register('hf_lift', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local kind, scope, actor = argv[1], argv[2], hf.text(argv[3], 'actor')
    local field = hf.fence_field(kind, scope)
    local reason = redis.call('HGET', hf.key.fences(ctx.tag), field)
    if not reason then hf.refuse('FENCE_NOT_FOUND', field .. ' does not stand') end
    redis.call('HDEL', hf.key.fences(ctx.tag), field)
    local rung = ring_parked(ctx)
    local left = kind == 'hold' and hf.requeue_held_by(ctx, field, actor) or 0
    hf.finish(ctx, 'lift', actor, { 'fence', field })
    return { 'fence', field, 'reason', reason, 'rung', rung, 'left', left, 'log_id', ctx.log_id }
  end)
end
