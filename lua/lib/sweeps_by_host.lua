-- Sweeps by host: its pending list, its lanes, what it was handed, whether it is served, its consumers.

local PENDING_A_SLICE = 100
local LANES_A_SLICE = 64

-- Whether a host holds anything that a sweep of it would look at; a key of a wrong type is something.
function hf.is_busy(ctx, host)
  local stream = hf.key.stream(ctx.tag, host)
  local found = redis.call('TYPE', stream)['ok']
  if found == 'stream' then
    if redis.call('XLEN', stream) > 0 then return true end
    local pending = redis.pcall('XPENDING', stream, 'nodes')
    if pending.err or pending[1] > 0 then return true end
  elseif found ~= 'none' then
    return true
  end
  return redis.call('EXISTS', hf.key.awaiting(ctx.tag, host), hf.key.parked(ctx.tag, host)) > 0
    or redis.call('ZSCORE', hf.key.stranded(ctx.tag), host) and true or false
end

-- Claims: a slice of a host's pending list against the rows.
local function sweep_pending(ctx, slice, host, entry)
  local stream = hf.key.stream(ctx.tag, host)
  local there = redis.call('XRANGE', stream, entry, entry)
  if not there[1] then
    redis.call('XACK', stream, 'nodes', entry)
    return hf.tell(slice, stream .. ' ' .. entry .. ': pending, but gone from the stream; cleared', true)
  end
  local id = there[1][2][2]
  local row, is_damaged
  if type(id) == 'string' and hf.message_of(id) then row, is_damaged = hf.read_delivery(ctx, id) end
  if is_damaged then
    return hf.tell(slice, hf.key.delivery(ctx.tag, id) .. ': pending, but its row lacks what decides', false)
  end
  if not row then
    redis.call('XACK', stream, 'nodes', entry) -- the entry stays in the stream as evidence
    return hf.tell(slice, stream .. ' ' .. entry .. ': names ' .. tostring(id) .. ', which has no row', false)
  end
  if row.host ~= host or row.entry ~= entry then
    hf.leave_stream(ctx, host, entry)
    return hf.tell(slice, stream .. ' ' .. entry .. ': left over of ' .. id, true)
  end
  local found = {}
  hf.check_entry(ctx, row, found, true)
  for _, each in ipairs(found) do hf.tell(slice, id .. ': ' .. each.what, each.repaired) end
end

function hf.sweep_claims(ctx, host, cursor)
  local slice = hf.new_slice()
  local stream = hf.key.stream(ctx.tag, host)
  hf.make_usable(ctx, slice, stream, 'stream')
  local from = cursor == '' and '-' or '(' .. cursor
  local entries = redis.pcall('XPENDING', stream, 'nodes', from, '+', PENDING_A_SLICE)
  if entries.err then
    if not string.find(entries.err, 'NOGROUP', 1, true) then error(entries) end
    if redis.call('EXISTS', stream) == 0 then return slice end
    hf.make_group(ctx, host)
    hf.tell(slice, stream .. ': its group was gone; made again at 0', true)
    return slice
  end
  for _, entry in ipairs(entries) do
    sweep_pending(ctx, slice, host, entry[1])
    slice.cursor = entry[1]
  end
  if #entries < PENDING_A_SLICE then slice.cursor = '' end
  return slice
end

-- Parked: lanes that no pause stops any more are rung for; those whose list is gone are told.
function hf.sweep_parked(ctx, host, cursor)
  local slice = hf.new_slice()
  local parked, found = hf.key.parked(ctx.tag, host), {}
  hf.usable(ctx, parked, 'zset', found, true)
  if #found > 0 then
    hf.tell(slice, found[1].what, false)
    return slice
  end
  local hosts = hf.key.parked_hosts(ctx.tag)
  local lanes = redis.call('ZCARD', parked)
  local is_known = redis.call('SISMEMBER', hosts, host) == 1
  if lanes == 0 and is_known then
    redis.call('SREM', hosts, host)
    hf.tell(slice, parked .. ': gone, though the host parks something', false)
    return slice
  elseif lanes > 0 and not is_known then
    redis.call('SADD', hosts, host)
    hf.tell(slice, hosts .. ': did not name host ' .. host, true)
  end
  local scanned = redis.call('ZSCAN', parked, cursor == '' and '0' or cursor, 'COUNT', LANES_A_SLICE)
  local runnable = 0
  for at = 1, #scanned[2], 2 do
    local lane = scanned[2][at]
    local list = hf.key.lane(ctx.tag, host, lane)
    if redis.call('TYPE', list)['ok'] ~= 'list' then
      hf.tell(slice, list .. ': parked, but the lane lists nothing', false)
    else
      local conversation, session = hf.lane_parts(lane)
      local fence = hf.fence_over_lane(ctx, host, conversation, session)
      if not fence or fence.kind ~= 'pause' then runnable = runnable + 1 end
    end
  end
  if runnable > 0 then
    hf.ring(ctx, host, 'sweep')
    hf.tell(slice, parked .. ': ' .. runnable .. ' lanes that no pause stops; the host was rung', true)
  end
  slice.cursor = scanned[1] == '0' and '' or scanned[1]
  return slice
end

local function sweep_executing(ctx, slice, row)
  local prefix = 'attempt_' .. row.attempts .. '_'
  local told = redis.call('HMGET', hf.key.delivery(ctx.tag, row.id), prefix .. 'begun_at', prefix .. 'unknown_at')
  local begun_at = tonumber(told[1]) or ctx.now
  local reason = nil
  if not told[2] and not hf.executor_lives(ctx, row) then
    reason = 'stale'
  elseif ctx.now - begun_at >= hf.setting(ctx, 'report_deadline_ms') then
    reason = 'overdue'
  end
  local attempt = row.id .. '/' .. row.attempts
  if told[2] then
    -- It was listed before: it stays so, since when it was.
    if redis.call('ZADD', hf.key.unknown(ctx.tag), 'NX', tonumber(told[2]) or ctx.now, attempt) == 1 then
      hf.tell(slice, attempt .. ': the unknown list did not name it', true)
    end
  elseif reason and hf.list_unknown(ctx, row, row.attempts, reason) then
    hf.note_move(ctx, attempt, 'executing', 'unknown')
    hf.tell(slice, attempt .. ': ' .. reason .. '; in the unknown list', true)
  end
end

local function sweep_awaited(ctx, slice, host, id)
  local row = hf.read_delivery(ctx, id)
  if not row then
    hf.tell(slice, hf.key.awaiting(ctx.tag, host) .. ': names ' .. id .. ', which has no row', false)
  elseif row.host ~= host or row.state ~= 'delivered' or hf.is_finished(row) then
    hf.stop_awaiting(ctx, host, id)
    hf.tell(slice, id .. ': awaited by ' .. host .. ', but ' .. row.state .. '; taken off', true)
  elseif hf.is_executing(row) then
    sweep_executing(ctx, slice, row)
  elseif row.execute_by and row.execute_by <= ctx.now then
    hf.fail_delivery(ctx, row, 'expired', 'sweep', 'execute_by')
    hf.tell(slice, id .. ': execute_by has passed', true)
  end
end

-- Reports: a slice of what a host was handed and has not finished. Open attempts of gone executors, and those past the
-- report deadline, become visible as unknown.
function hf.sweep_reports(ctx, host, cursor)
  local slice = hf.new_slice()
  local key = hf.key.awaiting(ctx.tag, host)
  hf.make_usable(ctx, slice, key, 'zset')
  local slices, ended = hf.awaiting_after(ctx, host, cursor == '' and 'start' or cursor)
  for _, each in ipairs(slices) do
    sweep_awaited(ctx, slice, host, each.id)
    cursor = each.cursor
  end
  slice.cursor = ended and '' or cursor
  return slice
end

-- A retire that was cut: a slice of what is left there goes to the held queue.
local function go_on_retiring(ctx, slice, host)
  local cursor = redis.call('HGET', hf.key.host(ctx.tag, host), 'retire_cursor')
  if not cursor then return end
  local more = hf.retire_slice(ctx, host, 'sweep', cursor)
  hf.tell(slice, 'host ' .. host .. ': its retiring was cut; a slice of what it still had is held', true)
  slice.cursor = more and 'retiring' or ''
end

-- Stale: whether a host has work and nobody to do it. It is listed since when; nodes that live are rung when a peer
-- of theirs is gone and owns something. Retiring that was cut goes on.
function hf.sweep_stale(ctx, host)
  local slice = hf.new_slice()
  local stranded = hf.key.stranded(ctx.tag)
  if hf.is_retired(ctx, host) then go_on_retiring(ctx, slice, host) end
  local live = hf.host_serves(ctx, host, '')
  local stream = hf.key.stream(ctx.tag, host)
  local waits = redis.call('TYPE', stream)['ok'] == 'stream' and redis.call('XLEN', stream) or 0
  if redis.call('TYPE', hf.key.awaiting(ctx.tag, host))['ok'] == 'zset' then
    waits = waits + redis.call('ZCARD', hf.key.awaiting(ctx.tag, host))
  end
  if live or waits == 0 or hf.is_retired(ctx, host) then
    redis.call('ZREM', stranded, host)
  elseif hf.may_judge(ctx) then
    redis.call('ZADD', stranded, 'NX', ctx.now, host)
    hf.tell(slice, 'host ' .. host .. ': ' .. waits .. ' deliveries and no live node', false)
  end
  if live then
    local gone = hf.gone_peers(ctx, { host = host, id = '' })
    for _, peer in ipairs(gone) do
      local pending = redis.pcall('XPENDING', stream, 'nodes', '-', '+', 1, peer.id)
      if not pending.err and #pending > 0 then
        hf.ring(ctx, host, 'sweep')
        redis.call('HSET', hf.key.host(ctx.tag, host), 'peers_look_at', 0)
        hf.tell(slice, 'node ' .. host .. '/' .. peer.id .. ': ' .. peer.how .. ' and owns deliveries; its peers were rung', true)
        break
      end
    end
  end
  return slice
end

-- That a host is retired stands on its row and in a set: either tells the other.
local function sweep_retired(ctx, slice, host)
  local key, set = hf.key.host(ctx.tag, host), hf.key.retired(ctx.tag)
  local on_row, in_set = redis.call('HEXISTS', key, 'retired_at') == 1, redis.call('SISMEMBER', set, host) == 1
  if on_row == in_set then return end
  if on_row then redis.call('SADD', set, host) else redis.call('HSET', key, 'retired_at', ctx.now) end
  hf.tell(slice, 'host ' .. host .. ': retired, by ' .. (on_row and key or set) .. ' alone; both say so now', true)
end

-- Nodes: consumers that own nothing and whose node is gone, or never was, leave the group.
function hf.sweep_nodes(ctx, host)
  local slice = hf.new_slice()
  sweep_retired(ctx, slice, host)
  local stream = hf.key.stream(ctx.tag, host)
  local consumers = redis.pcall('XINFO', 'CONSUMERS', stream, 'nodes')
  if consumers.err then return slice end
  for _, consumer in ipairs(consumers) do
    local name, pending = consumer[2], consumer[4]
    local node = hf.read_node(ctx, host, name)
    local gone = not node or node.state == 'left' or ctx.now - node.heartbeat_at > hf.setting(ctx, 'retention_ms')
    if pending == 0 and gone then
      redis.call('XGROUP', 'DELCONSUMER', stream, 'nodes', name)
      hf.tell(slice, stream .. ': consumer ' .. name .. ' owned nothing and is gone; taken out of the group', true)
    end
  end
  return slice
end
