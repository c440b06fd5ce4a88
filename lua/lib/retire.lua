-- Retiring a host: nothing is handed out there any more. Its deliveries go to the held queue, a slice a call;
-- open attempts become visible as unknown, and may still be reported.

local MOVED_A_CALL = 200

function hf.is_retired(ctx, host)
  ctx.retired = ctx.retired or {}
  if ctx.retired[host] == nil then
    ctx.retired[host] = redis.call('HEXISTS', hf.key.host(ctx.tag, host), 'retired_at') == 1
  end
  return ctx.retired[host]
end

function hf.retired_known(ctx, host, retired_at)
  ctx.retired = ctx.retired or {}
  ctx.retired[host] = retired_at and true or false
end

local function retire_one(ctx, id, entry, host, actor)
  local row = hf.read_delivery(ctx, id)
  if not row then return false end
  if row.host ~= host then return true end
  if hf.is_executing(row) then
    if hf.list_unknown(ctx, row, row.attempts, 'retired') then
      hf.note_move(ctx, row.id .. '/' .. row.attempts, 'executing', 'unknown')
    end
  elseif not hf.is_finished(row) and (not entry or row.entry == entry) then
    hf.hold_delivery(ctx, row, 'retired', actor)
  end
  return true
end

-- The parked lanes of the host list nothing any more. True when there are more of them.
local function forget_lanes(ctx, host)
  local lanes = redis.call('ZRANGE', hf.key.parked(ctx.tag, host), 0, MOVED_A_CALL - 1)
  for _, lane in ipairs(lanes) do
    redis.call('DEL', hf.key.lane(ctx.tag, host, lane))
    redis.call('ZREM', hf.key.parked(ctx.tag, host), lane)
  end
  if #lanes == MOVED_A_CALL then return true end
  redis.call('SREM', hf.key.parked_hosts(ctx.tag), host)
  return false
end

-- Carries a slice of what a host holds to `act(ctx, id, entry, host, actor)`, which answers false where there is no row.
-- Answers where to go on, and whether there is more.
function hf.host_slice(ctx, host, cursor, act, actor)
  local after = cursor == 'start' and '-' or string.match(cursor, '^stream (%S+)$')
  if after then
    local from = after == '-' and '-' or '(' .. after
    local entries = redis.call('XRANGE', hf.key.stream(ctx.tag, host), from, '+', 'COUNT', MOVED_A_CALL)
    for _, entry in ipairs(entries) do
      -- An entry without a row stays as evidence.
      if act(ctx, entry[2][2], entry[1], host, actor) then hf.leave_stream(ctx, host, entry[1]) end
    end
    if #entries == MOVED_A_CALL then return 'stream ' .. entries[#entries][1], true end
    cursor = 'awaiting'
  end
  local found, ended = hf.awaiting_after(ctx, host, cursor)
  for _, each in ipairs(found) do
    act(ctx, each.id, nil, host, actor)
    cursor = each.cursor
  end
  if not ended then return cursor, true end
  return cursor, forget_lanes(ctx, host)
end

-- A slice from there; the row of the host says where to go on, as long as there is more.
function hf.retire_slice(ctx, host, actor, cursor)
  local key = hf.key.host(ctx.tag, host)
  local next_cursor, more = hf.host_slice(ctx, host, cursor, retire_one, actor)
  if more then redis.call('HSET', key, 'retire_cursor', next_cursor) else redis.call('HDEL', key, 'retire_cursor') end
  return more
end
