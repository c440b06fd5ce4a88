-- hf_join: a process of a node begins to work for its host. A higher incarnation supersedes the earlier one.
-- KEYS   1 tag
-- ARGV   host node incarnation instance scopes(JSON: directories whose sessions it serves, '[]' for none)
--        last_log_id(what this node saw last, of its mirror; 0-0 for nothing)
-- REPLY  now, log_id, store_id, generation, heartbeat_ms, stale_after_ms, max_result_bytes, max_redrive, recovery_age_ms,
--        report_deadline_ms, bad_settings (names of settings whose values are bad, blank-separated: their defaults are used)
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT SUPERSEDED MIRROR_CLONED LEFT
-- STATES none
do
  local TOLD = { 'heartbeat_ms', 'stale_after_ms', 'max_result_bytes', 'max_redrive', 'recovery_age_ms', 'report_deadline_ms' }

  local function join_reply(ctx)
    local reply = {
      'now', ctx.now, 'log_id', hf.last_log_id(ctx), 'store_id', ctx.store_id, 'generation', ctx.generation,
    }
    for _, name in ipairs(TOLD) do
      reply[#reply + 1] = name
      reply[#reply + 1] = hf.setting(ctx, name)
    end
    reply[#reply + 1] = 'bad_settings'
    reply[#reply + 1] = table.concat(hf.bad_settings(ctx), ' ')
    return reply
  end

  local function check_predecessor(known, name, incarnation, instance)
    if not known then return end
    if incarnation < known.incarnation then
      hf.refuse('SUPERSEDED', 'node ' .. name .. ' is at incarnation ' .. known.incarnation .. ', you are ' .. incarnation)
    end
    if incarnation == known.incarnation and instance ~= known.instance then
      hf.refuse('MIRROR_CLONED', 'incarnation ' .. incarnation .. ' of node ' .. name .. ' is another process; its mirror was copied')
    end
    if incarnation == known.incarnation and known.state == 'left' then
      hf.refuse('LEFT', 'incarnation ' .. incarnation .. ' of node ' .. name .. ' has left')
    end
  end

  hf.register('hf_join', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local host, id = hf.host_id(argv[1]), hf.id(argv[2], 'node')
    local incarnation, instance = hf.integer(argv[3], 'incarnation', 1), hf.id(argv[4], 'instance')
    local scopes, seen_log_id = argv[5] or '', hf.log_id(argv[6], 'last_log_id')
    local known = hf.read_node(ctx, host, id)
    local node = { host = host, id = id, name = host .. '/' .. id, incarnation = incarnation }
    check_predecessor(known, node.name, incarnation, instance)
    hf.present(ctx, host, id, seen_log_id)
    if known and incarnation == known.incarnation then
      hf.beat(ctx, node, 'last_log_id', seen_log_id)
      return join_reply(ctx)
    end

    local host_key = hf.key.host(ctx.tag, host)
    hf.register_host(ctx, host, redis.call('HEXISTS', host_key, 'first_seen_at') == 1)
    redis.call('HSET', host_key, 'node:' .. id, ctx.now, 'joined_at', ctx.now, 'peers_look_at', 0)
    hf.beat(ctx, node, 'incarnation', incarnation, 'instance', instance, 'state', 'live', 'joined_at', ctx.now,
      'scopes', scopes, 'last_log_id', seen_log_id, 'request', 0, 'request_answer', '')
    local key = hf.key.node(ctx.tag, host, id)
    redis.call('HDEL', key, 'left_at', 'resume_pending', 'resume_awaiting')
    if known then redis.call('HSET', key, 'resume', 1) end
    hf.finish(ctx, 'join', node.name, { 'incarnation', incarnation })
    return join_reply(ctx)
  end)
end
