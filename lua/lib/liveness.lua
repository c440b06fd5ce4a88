-- Liveness: who is taken to be alive, and when nobody is judged.

-- How often a node speaks: every heartbeat_ms, and three times within stale_after_ms at least.
local function pace_ms(ctx)
  return math.min(hf.setting(ctx, 'heartbeat_ms'), math.floor(hf.setting(ctx, 'stale_after_ms') / 3))
end

-- After a stall of Redis, or a jump of its clock, nobody is judged until live nodes had time to speak.
-- A stall shows as a hub in which no node at all was heard for twice the time between heartbeats. It is noted once: when
-- nobody speaks after it either, the nodes are judged.
function hf.note_stall(ctx)
  local newest = redis.call('ZREVRANGE', hf.key.nodes(ctx.tag), 0, 0, 'WITHSCORES')
  local heard_at = tonumber(newest[2])
  if not heard_at then return end
  local period = pace_ms(ctx)
  if ctx.now - heard_at > 2 * period or heard_at - ctx.now > period then
    local noted = redis.call('HGET', hf.key.liveness(ctx.tag), 'last_heard_at')
    if tonumber(noted) == heard_at then return end
    redis.call('HSET', hf.key.liveness(ctx.tag), 'stalled_at', ctx.now, 'last_heard_at', heard_at, 'judge_after',
      ctx.now + math.floor(1.5 * period))
  end
end

-- Whether a node that is silent may be taken for gone.
function hf.may_judge(ctx)
  hf.note_stall(ctx)
  local judge_after = tonumber(redis.call('HGET', hf.key.liveness(ctx.tag), 'judge_after'))
  if not judge_after or ctx.now >= judge_after then return true end
  -- A mark from before a backward jump of the clock would judge nobody for long: shorten it.
  local longest = ctx.now + math.floor(1.5 * pace_ms(ctx))
  if judge_after > longest then redis.call('HSET', hf.key.liveness(ctx.tag), 'judge_after', longest) end
  return false
end

-- Whether a node was heard lately and has not left.
function hf.is_fresh(ctx, node)
  return node.state ~= 'left' and ctx.now - node.heartbeat_at < hf.setting(ctx, 'stale_after_ms')
end

-- Whether a node's process may still act: fresh, or nobody is judged at present.
local function may_live(ctx, node)
  return node.state ~= 'left' and (hf.is_fresh(ctx, node) or not hf.may_judge(ctx))
end

-- Whether the process that began the open attempt of a delivery may still act on it.
function hf.executor_lives(ctx, row)
  local prefix = 'attempt_' .. row.attempts
  local begun = redis.call('HMGET', hf.key.delivery(ctx.tag, row.id), prefix .. '_node', prefix .. '_incarnation',
    prefix .. '_ended_at')
  if begun[3] then return false end
  local host, id = string.match(begun[1] or '', '^([^/]+)/(.+)$')
  local node = host and hf.read_node(ctx, host, id)
  return node and node.incarnation == tonumber(begun[2]) and may_live(ctx, node) or false
end

-- The other nodes of the host that are gone: `left` (clean) or `stale`. Second answer: when the next of
-- the live ones could become stale.
function hf.gone_peers(ctx, me)
  local gone, next_at = {}, nil
  local stale_after = hf.setting(ctx, 'stale_after_ms')
  local judging = nil
  for _, peer in ipairs(hf.nodes_of(ctx, me.host, me.id)) do
    if peer.state == 'left' then
      gone[#gone + 1] = { id = peer.id, how = 'left' }
    else
      if peer.heartbeat_at > ctx.now then
        -- Written before a backward jump of the clock: its age counts from now.
        redis.call('HSET', hf.key.node(ctx.tag, me.host, peer.id), 'heartbeat_at', ctx.now)
        peer.heartbeat_at = ctx.now
      end
      local stale_at = peer.heartbeat_at + stale_after
      if ctx.now >= stale_at then
        if judging == nil then judging = hf.may_judge(ctx) end
        if judging then gone[#gone + 1] = { id = peer.id, how = 'stale' } end
        stale_at = ctx.now + pace_ms(ctx)
      end
      if not next_at or stale_at < next_at then next_at = stale_at end
    end
  end
  return gone, next_at
end

local function serves(ctx, node, scope)
  local text = redis.call('HGET', hf.key.node(ctx.tag, node.host, node.id), 'scopes') or ''
  local parsed, scopes = pcall(cjson.decode, text)
  if not parsed or type(scopes) ~= 'table' then return false end
  for _, each in ipairs(scopes) do
    if each == scope then return true end
  end
  return false
end

-- Whether a host has live nodes, and one that is registered for the scope.
function hf.host_serves(ctx, host, scope)
  local live = false
  for _, node in ipairs(hf.nodes_of(ctx, host)) do
    if hf.is_fresh(ctx, node) then
      live = true
      if serves(ctx, node, scope) then return true, true end
    end
  end
  return live, false
end
