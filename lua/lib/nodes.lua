-- Nodes: who speaks, and whether it is the present process.

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

function hf.beat(ctx, node, ...)
  hf.note_stall(ctx)
  redis.call('HSET', hf.key.node(ctx.tag, node.host, node.id), 'heartbeat_at', ctx.now, ...)
  redis.call('ZADD', hf.key.nodes(ctx.tag), ctx.now, node.name)
end

-- The nodes that the row of a host names, but for one.
function hf.nodes_of(ctx, host, but)
  local nodes = {}
  for _, field in ipairs(redis.call('HKEYS', hf.key.host(ctx.tag, host))) do
    local id = string.match(field, '^node:(.+)$')
    local node = id and id ~= but and hf.read_node(ctx, host, id)
    if node then nodes[#nodes + 1] = node end
  end
  return nodes
end
