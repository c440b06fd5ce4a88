-- hf_retire: a host is taken out for good. The first call stops claims and begins there; each call moves a
-- slice of its deliveries to the held queue. Repeat while `more` is 1; where nobody does, a sweep goes on.
-- KEYS   1 tag
-- ARGV   host actor reason
-- REPLY  host, more 0|1, log_id
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT HOST_NOT_FOUND
-- STATES queued to delivered while idle -> held (retired); open attempts -> unknown list
do
  hf.register('hf_retire', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local host, actor, reason = hf.host_id(argv[1]), hf.text(argv[2], 'actor'), hf.text(argv[3], 'reason')
    local key = hf.key.host(ctx.tag, host)
    local known = redis.call('HMGET', key, 'first_seen_at', 'retired_at')
    if not known[1] then hf.refuse('HOST_NOT_FOUND', 'no host ' .. host .. ' was ever seen') end
    if not known[2] then
      redis.call('HSET', key, 'retired_at', ctx.now, 'retired_by', actor, 'retired_reason', reason, 'retire_cursor', 'start')
      redis.call('SADD', hf.key.retired(ctx.tag), host)
      hf.ring(ctx, host, 'retire') -- nodes that wait find out now
    end
    local more = hf.retire_slice(ctx, host, actor, redis.call('HGET', key, 'retire_cursor') or 'start')
    hf.finish(ctx, 'retire', actor, { 'host', host, 'reason', reason })
    return { 'host', host, 'more', more and 1 or 0, 'log_id', ctx.log_id }
  end)
end
