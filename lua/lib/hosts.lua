-- Hosts: the addresses of streams. A host row is made with its first delivery or its first node.

-- Answers the host row's bookkeeping, or refuses NO_ROUTE where unknown hosts are not queued for.
function hf.route_host(ctx, host)
  ctx.hosts = ctx.hosts or {}
  if ctx.hosts[host] then return ctx.hosts[host] end
  local row = redis.call('HMGET', hf.key.host(ctx.tag, host), 'first_seen_at', 'joined_at', 'group_made_at', 'retired_at')
  if not row[2] and hf.setting(ctx, 'open_hosts') == 0 then
    hf.refuse('NO_ROUTE', 'host ' .. host .. ' never joined and open_hosts is 0; nothing was accepted')
  end
  hf.expect_type(hf.key.stream(ctx.tag, host), 'stream')
  if not row[1] then hf.expect_type(hf.key.hosts(ctx.tag), 'set') end
  hf.retired_known(ctx, host, row[4])
  ctx.hosts[host] = { known = row[1] and true or false, group_made = row[3] and true or false }
  return ctx.hosts[host]
end

-- Where a session lives now: its owner host. Never seen is NO_ROUTE.
function hf.route_session(ctx, session)
  local row = hf.session(ctx, session)
  if not row then
    hf.refuse('NO_ROUTE', 'session ' .. session .. ' was never opened; nothing was accepted')
  end
  return row.host
end

-- Lists the host on first sight.
function hf.register_host(ctx, host, known)
  if known then return end
  redis.call('HSET', hf.key.host(ctx.tag, host), 'first_seen_at', ctx.now)
  redis.call('SADD', hf.key.hosts(ctx.tag), host)
end

-- A host that was never sent anything has no group yet: what is moved there is its first.
function hf.need_group(ctx, host)
  if redis.call('HEXISTS', hf.key.host(ctx.tag, host), 'group_made_at') == 0 then hf.make_group(ctx, host) end
end

-- The consumer group is made with the first queued delivery, at 0.
function hf.make_group(ctx, host)
  local made = redis.pcall('XGROUP', 'CREATE', hf.key.stream(ctx.tag, host), 'nodes', '0', 'MKSTREAM')
  if type(made) == 'table' and made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then error(made) end
  redis.call('HSET', hf.key.host(ctx.tag, host), 'group_made_at', ctx.now)
end
