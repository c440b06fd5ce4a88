-- The clock of the testing kit (holdfast/testing). Part of its library alone: what runs in production has no way to set
-- a clock. A record is ahead of its server by `ahead_ms` of {hf}:testing; log entries and ids keep the server's time.
do
  local function key(tag) return tag .. ':testing' end

  local open = hf.open
  function hf.open(keys)
    local ctx = open(keys)
    ctx.now = ctx.now + (tonumber(redis.call('HGET', key(ctx.tag), 'ahead_ms')) or 0)
    ctx.at = string.format('%d', ctx.now)
    return ctx
  end

  -- hf_advance_clock: sets the clock ahead, by 0 ms to read it, and wakes every node, for what is due may have changed.
  -- KEYS   1 tag
  -- ARGV   ms
  -- REPLY  now
  -- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
  hf.register('hf_advance_clock', {}, function(keys, argv)
    local ctx = hf.open(keys)
    local ms = hf.integer(argv[1], 'ms', 0)
    if ms > 0 then
      redis.call('HINCRBY', key(ctx.tag), 'ahead_ms', ms)
      for _, host in ipairs(redis.call('SMEMBERS', hf.key.hosts(ctx.tag))) do hf.ring(ctx, host, 'clock') end
      hf.finish(ctx, 'advance_clock', 'testing', { 'ms', ms })
    end
    return { 'now', ctx.now + ms }
  end)
end
