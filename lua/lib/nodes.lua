-- Nodes: who speaks, whether it is the present process, and who is stale.

-- The caller's own row. Refuses unless this incarnation is the one that joined and has not left.
function hf.open_process(ctx, host, id, incarnation)
  local node = hf.read_node(ctx, host, id)
  if not node or incarnation > node.incarnation then
    hf.refuse('NOT_JOINED', 'node ' .. host .. '/' .. id .. ' incarnation ' .. incarnation .. ' has not joined')
  end
  if incarnation < node.incarnation then
    hf.refuse('SUPERSEDED', 'node ' .. host .. '/' .. id .. ' is at incarnation ' .. node.incarnation .. ', you are ' .. incarnation)
  end
  if node.state == 'left' then
    hf.refuse('LEFT', 'incarnation ' .. incarnation .. ' of node ' .. host .. '/' .. id .. ' has left')
  end
  return node
end

-- The same, of a node that may take on work.
function hf.open_node(ctx, host, id, incarnation)
  if hf.is_retired(ctx, host) then hf.refuse('HOST_RETIRED', 'host ' .. host .. ' is retired; its nodes only report') end
  return hf.open_process(ctx, host, id, incarnation)
end

function hf.read_node(ctx, host, id)
  local values = redis.call('HMGET', hf.key.node(ctx.tag, host, id), 'incarnation', 'instance', 'state', 'heartbeat_at',
    'request', 'request_answer', 'resume', 'resume_pending', 'resume_awaiting')
  if not values[1] then return nil end
  return {
    host = host,
    id = id,
    name = host .. '/' .. id,
    incarnation = tonumber(values[1]),
    instance = values[2],
    state = values[3],
    heartbeat_at = tonumber(values[4]) or 0,
    request = tonumber(values[5]) or 0,
    request_answer = values[6] or '',
    resume = values[7] or nil,
    resume_pending = values[8] or nil,
    resume_awaiting = values[9] or nil,
  }
end

-- After a stall of Redis, or a jump of its clock, nobody is judged until live nodes had time to speak.
-- A stall shows as a hub in which no node at all was heard for two heartbeat periods. It is noted once: when
-- nobody speaks after it either, the nodes are judged.
local function note_stall(ctx)
  local newest = redis.call('ZREVRANGE', hf.key.nodes(ctx.tag), 0, 0, 'WITHSCORES')
  local heard_at = tonumber(newest[2])
  if not heard_at then return end
  local period = hf.setting(ctx, 'heartbeat_ms')
  if ctx.now - heard_at > 2 * period or heard_at - ctx.now > period then
    local noted = redis.call('HGET', hf.key.liveness(ctx.tag), 'last_heard_at')
    if tonumber(noted) == heard_at then return end
    redis.call('HSET', hf.key.liveness(ctx.tag), 'stalled_at', ctx.now, 'last_heard_at', heard_at, 'judge_after',
      ctx.now + math.floor(1.5 * period))
  end
end

function hf.beat(ctx, node, ...)
  note_stall(ctx)
  redis.call('HSET', hf.key.node(ctx.tag, node.host, node.id), 'heartbeat_at', ctx.now, ...)
  redis.call('ZADD', hf.key.nodes(ctx.tag), ctx.now, node.name)
end

function hf.may_judge(ctx)
  note_stall(ctx)
  local judge_after = tonumber(redis.call('HGET', hf.key.liveness(ctx.tag), 'judge_after'))
  if not judge_after or ctx.now >= judge_after then return true end
  -- A mark from before a backward jump of the clock would judge nobody for long: shorten it.
  local longest = ctx.now + math.floor(1.5 * hf.setting(ctx, 'heartbeat_ms'))
  if judge_after > longest then redis.call('HSET', hf.key.liveness(ctx.tag), 'judge_after', longest) end
  return false
end

-- The other nodes of the host that are gone: `left` (clean) or `stale`. Second answer: when the next of
-- the live ones could become stale.
function hf.gone_peers(ctx, me)
  local gone, next_at = {}, nil
  local stale_after = hf.setting(ctx, 'stale_after_ms')
  local judging = nil
  for _, field in ipairs(redis.call('HKEYS', hf.key.host(ctx.tag, me.host))) do
    local id = string.match(field, '^node:(.+)$')
    if id and id ~= me.id then
      local peer = hf.read_node(ctx, me.host, id)
      if peer and peer.state == 'left' then
        gone[#gone + 1] = { id = id, how = 'left' }
      elseif peer then
        if peer.heartbeat_at > ctx.now then
          -- Written before a backward jump of the clock: its age counts from now.
          redis.call('HSET', hf.key.node(ctx.tag, me.host, id), 'heartbeat_at', ctx.now)
          peer.heartbeat_at = ctx.now
        end
        local stale_at = peer.heartbeat_at + stale_after
        if ctx.now >= stale_at then
          if judging == nil then judging = hf.may_judge(ctx) end
          if judging then gone[#gone + 1] = { id = id, how = 'stale' } end
          stale_at = ctx.now + hf.setting(ctx, 'heartbeat_ms')
        end
        if not next_at or stale_at < next_at then next_at = stale_at end
      end
    end
  end
  return gone, next_at
end
