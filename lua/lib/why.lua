-- Why a delivery is where it is: the first that fits of held, unknown, behind a fence, stranded or overdue.

local function unknown_attempt(ctx, row)
  if row.state == 'unknown' then return row.id end
  local attempt = row.id .. '/' .. row.attempts
  return redis.call('ZSCORE', hf.key.unknown(ctx.tag), attempt) and attempt or nil
end

-- What is wrong with the node that began the open attempt, until a sweep lists it; empty where nothing is.
local function silence_of(ctx, row)
  local prefix = 'attempt_' .. row.attempts
  local begun = redis.call('HMGET', hf.key.delivery(ctx.tag, row.id), prefix .. '_node', prefix .. '_incarnation')
  local host, id = string.match(begun[1] or '', '^([^/]+)/(.+)$')
  local node = host and hf.read_node(ctx, host, id)
  if not node then return '' end
  if node.incarnation ~= tonumber(begun[2]) then return ', and another process of that node has joined since' end
  if node.state == 'left' then return ', and that node has left' end
  local silent = ctx.now - node.heartbeat_at
  return silent >= hf.setting(ctx, 'stale_after_ms') and ', and that node is silent for ' .. math.floor(silent / 1000) .. ' s' or ''
end

local function why_executing(ctx, row)
  local begun = tonumber(redis.call('HGET', hf.key.delivery(ctx.tag, row.id), 'attempt_' .. row.attempts .. '_begun_at')) or ctx.now
  local by = 'attempt ' .. row.id .. '/' .. row.attempts .. ' runs on node ' .. tostring(row.owner) .. ' since ' .. begun
    .. silence_of(ctx, row)
  if ctx.now - begun > hf.setting(ctx, 'report_deadline_ms') then return 'overdue', by end
  return 'executing', by
end

local function why_waiting(ctx, row)
  if hf.came_too_late(ctx, row) then return row.state, 'its deliver_by has passed: the next claim or sweep fails it' end
  local fence = hf.fence_over(ctx, row)
  if fence and fence.session then
    return 'fenced', 'session ' .. fence.session .. ' is ' .. hf.session(ctx, fence.session).state
      .. (fence.kind == 'pause' and ': its deliveries wait until it opens again' or '')
  end
  if fence then
    return 'fenced', fence.field .. ' stands: ' .. tostring(redis.call('HGET', hf.key.fences(ctx.tag), fence.field))
  end
  local nodes, live = hf.nodes_of(ctx, row.host), 0
  for _, node in ipairs(nodes) do
    if hf.is_fresh(ctx, node) then live = live + 1 end
  end
  if live == 0 then
    return 'stranded', #nodes == 0 and 'no node of host ' .. row.host .. ' ever joined'
      or 'none of the ' .. #nodes .. ' nodes of host ' .. row.host .. ' is live'
  end
  if row.parked_by then return 'parked', 'behind earlier deliveries of its lane; the next claim serves the lane' end
  if row.state == 'queued' then return 'queued', 'waits for the next claim of host ' .. row.host end
  return row.state, 'with node ' .. tostring(row.owner) .. ' since epoch ' .. row.epoch
end

function hf.why(ctx, row)
  if row.state == 'held' then return 'held', tostring(row.held_reason) .. ((row.held_fence or '') ~= '' and ' ' .. row.held_fence or '') end
  if row.state == 'failed' then
    local failed = redis.call('HMGET', hf.key.delivery(ctx.tag, row.id), 'failed_code', 'failed_detail')
    return 'failed', tostring(failed[1]) .. ' ' .. tostring(failed[2] or '')
  end
  if hf.is_finished(row) then return row.attempt_status, 'finished by attempt ' .. row.id .. '/' .. row.attempts end
  local unknown = unknown_attempt(ctx, row)
  if unknown then
    -- The delivery as a whole, or its open attempt; an earlier attempt keeps its reason.
    local field = row.state == 'unknown' and 'unknown_reason' or 'attempt_' .. row.attempts .. '_unknown_reason'
    return 'unknown', unknown .. ': ' .. tostring(redis.call('HGET', hf.key.delivery(ctx.tag, row.id), field))
  end
  if hf.is_executing(row) then return why_executing(ctx, row) end
  return why_waiting(ctx, row)
end
