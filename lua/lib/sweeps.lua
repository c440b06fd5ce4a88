-- Sweeps: what puts a hub right without being asked. Each works on a slice and answers what it found, what it put
-- right, what it left, and where to go on. The same sweep twice at once does no harm.

local PENDING_A_SLICE = 100
local LANES_A_SLICE = 64
local FENCES_A_SLICE = 20
local AWAITING_A_SLICE = 100
local EFFECTS_A_SLICE = 100
local DEADLINES_A_SLICE = 100
local LOOKED_AT_AGAIN_MS = 60000

local function new_slice()
  return { found = 0, repaired = 0, left = 0, cursor = '', notes = {} }
end

-- One thing that was not right; what is told of it names its key.
local function tell(slice, text, repaired)
  slice.found = slice.found + 1
  if repaired then slice.repaired = slice.repaired + 1 else slice.left = slice.left + 1 end
  slice.notes[#slice.notes + 1] = text
end

function hf.slice_reply(ctx, sweep, slice)
  local said = #slice.notes > 0 and { 'notes', table.concat(slice.notes, '; ') } or nil
  hf.finish(ctx, 'sweep_' .. sweep, 'sweep', said)
  return {
    'found', slice.found, 'repaired', slice.repaired, 'left', slice.left, 'cursor', slice.cursor, 'notes', slice.notes,
  }
end

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
    return tell(slice, stream .. ' ' .. entry .. ': pending, but gone from the stream; cleared', true)
  end
  local id = there[1][2][2]
  local row, is_damaged
  if type(id) == 'string' and hf.message_of(id) then row, is_damaged = hf.read_delivery(ctx, id) end
  if is_damaged then
    return tell(slice, hf.key.delivery(ctx.tag, id) .. ': pending, but its row lacks what decides', false)
  end
  if not row then
    redis.call('XACK', stream, 'nodes', entry) -- the entry stays in the stream as evidence
    return tell(slice, stream .. ' ' .. entry .. ': names ' .. tostring(id) .. ', which has no row', false)
  end
  if row.host ~= host or row.entry ~= entry then
    hf.leave_stream(ctx, host, entry)
    return tell(slice, stream .. ' ' .. entry .. ': left over of ' .. id, true)
  end
  local found = {}
  hf.check_entry(ctx, row, found, true)
  for _, each in ipairs(found) do tell(slice, id .. ': ' .. each.what, each.repaired) end
end

function hf.sweep_claims(ctx, host, cursor)
  local slice = new_slice()
  local stream, found = hf.key.stream(ctx.tag, host), {}
  hf.usable(ctx, stream, 'stream', found, true)
  for _, each in ipairs(found) do tell(slice, each.what, true) end
  local from = cursor == '' and '-' or '(' .. cursor
  local entries = redis.pcall('XPENDING', stream, 'nodes', from, '+', PENDING_A_SLICE)
  if entries.err then
    if not string.find(entries.err, 'NOGROUP', 1, true) then error(entries) end
    if redis.call('EXISTS', stream) == 0 then return slice end
    hf.make_group(ctx, host)
    tell(slice, stream .. ': its group was gone; made again at 0', true)
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
  local slice = new_slice()
  local parked, found = hf.key.parked(ctx.tag, host), {}
  hf.usable(ctx, parked, 'zset', found, true)
  if #found > 0 then
    tell(slice, found[1].what, false)
    return slice
  end
  local hosts = hf.key.parked_hosts(ctx.tag)
  local lanes = redis.call('ZCARD', parked)
  local is_known = redis.call('SISMEMBER', hosts, host) == 1
  if lanes == 0 and is_known then
    redis.call('SREM', hosts, host)
    tell(slice, parked .. ': gone, though the host parks something', false)
    return slice
  elseif lanes > 0 and not is_known then
    redis.call('SADD', hosts, host)
    tell(slice, hosts .. ': did not name host ' .. host, true)
  end
  local scanned = redis.call('ZSCAN', parked, cursor == '' and '0' or cursor, 'COUNT', LANES_A_SLICE)
  local runnable = 0
  for at = 1, #scanned[2], 2 do
    local lane = scanned[2][at]
    local list = hf.key.lane(ctx.tag, host, lane)
    if redis.call('TYPE', list)['ok'] ~= 'list' then
      tell(slice, list .. ': parked, but the lane lists nothing', false)
    else
      local conversation, session = hf.lane_parts(lane)
      local fence = hf.fence_over_lane(ctx, host, conversation, session)
      if not fence or fence.kind ~= 'pause' then runnable = runnable + 1 end
    end
  end
  if runnable > 0 then
    hf.ring(ctx, host, 'sweep')
    tell(slice, parked .. ': ' .. runnable .. ' lanes that no pause stops; the host was rung', true)
  end
  slice.cursor = scanned[1] == '0' and '' or scanned[1]
  return slice
end

-- Held: holds that stand no more give back what they parked.
function hf.sweep_held(ctx, cursor)
  local slice = new_slice()
  local found = {}
  hf.usable(ctx, hf.key.holding(ctx.tag), 'set', found, true)
  for _, each in ipairs(found) do tell(slice, each.what, true) end
  local scanned = redis.call('SSCAN', hf.key.holding(ctx.tag), cursor == '' and '0' or cursor, 'COUNT', FENCES_A_SLICE)
  local again = false
  for _, field in ipairs(scanned[2]) do
    if not hf.standing_fence(ctx, field) then
      local left = hf.requeue_held_by(ctx, field, 'sweep')
      tell(slice, field .. ': stands no more; what it held is queued again', true)
      again = again or left > 0
    end
  end
  if again then slice.cursor = cursor == '' and '0' or cursor
  else slice.cursor = scanned[1] == '0' and '' or scanned[1] end
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
      tell(slice, attempt .. ': the unknown list did not name it', true)
    end
  elseif reason and hf.list_unknown(ctx, row, row.attempts, reason) then
    hf.note_move(ctx, attempt, 'executing', 'unknown')
    tell(slice, attempt .. ': ' .. reason .. '; in the unknown list', true)
  end
end

local function sweep_awaited(ctx, slice, host, id)
  local row = hf.read_delivery(ctx, id)
  if not row then
    tell(slice, hf.key.awaiting(ctx.tag, host) .. ': names ' .. id .. ', which has no row', false)
  elseif row.host ~= host or row.state ~= 'delivered' or hf.is_finished(row) then
    hf.stop_awaiting(ctx, host, id)
    tell(slice, id .. ': awaited by ' .. host .. ', but ' .. row.state .. '; taken off', true)
  elseif hf.is_executing(row) then
    sweep_executing(ctx, slice, row)
  elseif row.execute_by and row.execute_by <= ctx.now then
    hf.fail_delivery(ctx, row, 'expired', 'sweep', 'execute_by')
    tell(slice, id .. ': execute_by has passed', true)
  end
end

-- Reports: a slice of what a host was handed and has not finished. Open attempts of gone executors, and those past the
-- report deadline, become visible as unknown.
function hf.sweep_reports(ctx, host, cursor)
  local slice = new_slice()
  local key, found = hf.key.awaiting(ctx.tag, host), {}
  hf.usable(ctx, key, 'zset', found, true)
  for _, each in ipairs(found) do tell(slice, each.what, true) end
  local slices, ended = hf.awaiting_after(ctx, host, cursor == '' and 'start' or cursor)
  for at, each in ipairs(slices) do
    if at > AWAITING_A_SLICE then
      ended = false
      break
    end
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
  tell(slice, 'host ' .. host .. ': its retiring was cut; a slice of what it still had is held', true)
  slice.cursor = more and 'retiring' or ''
end

-- Stale: whether a host has work and nobody to do it. It is listed since when; nodes that live are rung when a peer
-- of theirs is gone and owns something. Retiring that was cut goes on.
function hf.sweep_stale(ctx, host)
  local slice = new_slice()
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
    tell(slice, 'host ' .. host .. ': ' .. waits .. ' deliveries and no live node', false)
  end
  if live then
    local gone = hf.gone_peers(ctx, { host = host, id = '' })
    for _, peer in ipairs(gone) do
      local pending = redis.pcall('XPENDING', stream, 'nodes', '-', '+', 1, peer.id)
      if not pending.err and #pending > 0 then
        hf.ring(ctx, host, 'sweep')
        redis.call('HSET', hf.key.host(ctx.tag, host), 'peers_look_at', 0)
        tell(slice, 'node ' .. host .. '/' .. peer.id .. ': ' .. peer.how .. ' and owns deliveries; its peers were rung', true)
        break
      end
    end
  end
  return slice
end

-- Effects: those open for longer than the report deadline become visible.
function hf.sweep_effects(ctx, cursor)
  local slice = new_slice()
  local key, found = hf.key.executing(ctx.tag), {}
  hf.usable(ctx, key, 'zset', found, true)
  for _, each in ipairs(found) do tell(slice, each.what, true) end
  local oldest = ctx.now - hf.setting(ctx, 'report_deadline_ms')
  local from = cursor == '' and 0 or tonumber(cursor)
  local listed = redis.call('ZRANGEBYSCORE', key, '-inf', oldest, 'LIMIT', from, EFFECTS_A_SLICE)
  for _, id in ipairs(listed) do
    local row = hf.read_effect(ctx, id)
    if not row or row.status ~= 'executing' then
      redis.call('ZREM', key, id)
      tell(slice, 'effect ' .. id .. ': listed as executing, but ' .. (row and row.status or 'without a row'), true)
      from = from - 1
    elseif hf.overdue_effect(ctx, row) then
      tell(slice, 'effect ' .. id .. ': overdue; in the unknown list', true)
    end
  end
  slice.cursor = #listed < EFFECTS_A_SLICE and '' or tostring(from + #listed)
  return slice
end

-- That a host is retired stands on its row and in a set: either tells the other.
local function sweep_retired(ctx, slice, host)
  local key, set = hf.key.host(ctx.tag, host), hf.key.retired(ctx.tag)
  local on_row, in_set = redis.call('HEXISTS', key, 'retired_at') == 1, redis.call('SISMEMBER', set, host) == 1
  if on_row == in_set then return end
  if on_row then redis.call('SADD', set, host) else redis.call('HSET', key, 'retired_at', ctx.now) end
  tell(slice, 'host ' .. host .. ': retired, by ' .. (on_row and key or set) .. ' alone; both say so now', true)
end

-- Nodes: consumers that own nothing and whose node is gone, or never was, leave the group.
function hf.sweep_nodes(ctx, host)
  local slice = new_slice()
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
      tell(slice, stream .. ': consumer ' .. name .. ' owned nothing and is gone; taken out of the group', true)
    end
  end
  return slice
end

local function sweep_deadline(ctx, slice, id)
  local row, is_damaged = hf.read_delivery(ctx, id)
  if is_damaged then return ctx.now + LOOKED_AT_AGAIN_MS end
  if not row or row.state == 'failed' or hf.is_finished(row) then return nil end
  if hf.came_too_late(ctx, row) and row.state == 'queued' then
    hf.leave_lane(ctx, row)
    hf.fail_delivery(ctx, row, 'expired', 'sweep', 'deliver_by')
    tell(slice, id .. ': deliver_by has passed', true)
    return nil
  end
  local idle = row.state == 'delivered' and not hf.is_executing(row)
  if row.execute_by and row.execute_by <= ctx.now and (idle or row.state == 'queued') then
    hf.leave_lane(ctx, row)
    hf.fail_delivery(ctx, row, 'expired', 'sweep', 'execute_by')
    tell(slice, id .. ': execute_by has passed', true)
    return nil
  end
  if row.execute_by and row.execute_by > ctx.now then return row.execute_by end
  -- Claimed, held or executing: looked at again, for it may come back.
  return ctx.now + LOOKED_AT_AGAIN_MS
end

-- Deadlines: what nobody claimed, or began, in time fails, also where no node lives.
function hf.sweep_deadlines(ctx)
  local slice = new_slice()
  local key, found = hf.key.deadlines(ctx.tag), {}
  hf.usable(ctx, key, 'zset', found, true)
  for _, each in ipairs(found) do tell(slice, each.what, true) end
  local due = redis.call('ZRANGEBYSCORE', key, '-inf', ctx.now, 'LIMIT', 0, DEADLINES_A_SLICE)
  for _, id in ipairs(due) do
    local again_at = sweep_deadline(ctx, slice, id)
    if again_at then redis.call('ZADD', key, again_at, id) else redis.call('ZREM', key, id) end
  end
  slice.cursor = #due < DEADLINES_A_SLICE and '' or 'more'
  return slice
end

local SESSIONS_A_SLICE = 50

-- Rehome: where policy allows, sessions whose host is gone go to another that serves their scope.
function hf.sweep_rehome(ctx, cursor)
  local slice = new_slice()
  if hf.setting(ctx, 'rehome_on_redrive') == 0 then return slice end
  local scanned = redis.call('ZSCAN', hf.key.sessions(ctx.tag), cursor == '' and '0' or cursor, 'COUNT', SESSIONS_A_SLICE)
  for at = 1, #scanned[2], 2 do
    local session = hf.session(ctx, scanned[2][at])
    if session and redis.call('ZCARD', hf.key.session_deliveries(ctx.tag, session.id)) > 0 then
      local from = session.host
      hf.rehome_on_redrive(ctx, session)
      if session.host ~= from then tell(slice, 'session ' .. session.id .. ': from ' .. from .. ' to ' .. session.host, true) end
    end
  end
  slice.cursor = scanned[1] == '0' and '' or scanned[1]
  return slice
end
