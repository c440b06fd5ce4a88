-- hf_leave: a clean leave. What the node owns and has not begun may be taken over at once, uncounted; its
-- begins are refused from now on, its reports still accepted.
-- KEYS   1 tag
-- ARGV   host node incarnation
-- REPLY  log_id
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT NOT_JOINED SUPERSEDED HOST_RETIRED
-- STATES none
do
  local KEPT = 20

  -- The incarnations that left cleanly, blank-separated with blanks around, latest first.
  local function with_latest(list, incarnation)
    local words = { '', incarnation }
    for word in string.gmatch(list, '%d+') do
      if #words <= KEPT then words[#words + 1] = word end
    end
    words[#words + 1] = ''
    return table.concat(words, ' ')
  end

  hf.register('hf_leave', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local host, id, incarnation = hf.host_id(argv[1]), hf.id(argv[2], 'node'), hf.integer(argv[3], 'incarnation', 1)
    local known = hf.read_node(ctx, host, id)
    if known and known.incarnation == incarnation and known.state == 'left' then
      return { 'log_id', hf.last_log_id(ctx) }
    end
    local node = hf.open_node(ctx, host, id, incarnation)
    local key = hf.key.node(ctx.tag, host, id)
    local earlier = redis.call('HGET', key, 'left_incarnations')
    redis.call('HSET', key, 'state', 'left', 'left_at', ctx.now, 'left_incarnations', with_latest(earlier or '', incarnation))
    redis.call('ZREM', hf.key.nodes(ctx.tag), node.name)
    redis.call('HSET', hf.key.host(ctx.tag, host), 'peers_look_at', 0)
    redis.call('HDEL', hf.key.host(ctx.tag, host), 'peers_cursor') -- what it owns may lie before a walk under way
    hf.ring(ctx, host, 'leave')
    hf.finish(ctx, 'leave', node.name, { 'incarnation', incarnation })
    return { 'log_id', ctx.log_id }
  end)
end
