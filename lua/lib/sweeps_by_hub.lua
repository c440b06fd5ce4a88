-- Sweeps by hub: holds that were lifted, effects, deadlines, sessions whose host is gone.

local FENCES_A_SLICE = 20
local EFFECTS_A_SLICE = 100
local DEADLINES_A_SLICE = 100
local LOOKED_AT_AGAIN_MS = 60000
local SESSIONS_A_SLICE = 50

-- Held: holds that stand no more give back what they parked.
function hf.sweep_held(ctx, cursor)
  local slice = hf.new_slice()
  hf.make_usable(ctx, slice, hf.key.holding(ctx.tag), 'set')
  local scanned = redis.call('SSCAN', hf.key.holding(ctx.tag), cursor == '' and '0' or cursor, 'COUNT', FENCES_A_SLICE)
  local again = false
  for _, field in ipairs(scanned[2]) do
    if not hf.standing_fence(ctx, field) then
      local left = hf.requeue_held_by(ctx, field, 'sweep')
      hf.tell(slice, field .. ': stands no more; what it held is queued again', true)
      again = again or left > 0
    end
  end
  if again then slice.cursor = cursor == '' and '0' or cursor
  else slice.cursor = scanned[1] == '0' and '' or scanned[1] end
  return slice
end

-- Effects: those open for longer than the report deadline become visible.
function hf.sweep_effects(ctx, cursor)
  local slice = hf.new_slice()
  local key = hf.key.executing(ctx.tag)
  hf.make_usable(ctx, slice, key, 'zset')
  local oldest = ctx.now - hf.setting(ctx, 'report_deadline_ms')
  local from = cursor == '' and 0 or tonumber(cursor)
  local listed = redis.call('ZRANGEBYSCORE', key, '-inf', oldest, 'LIMIT', from, EFFECTS_A_SLICE)
  for _, id in ipairs(listed) do
    local row = hf.read_effect(ctx, id)
    if not row or row.status ~= 'executing' then
      redis.call('ZREM', key, id)
      hf.tell(slice, 'effect ' .. id .. ': listed as executing, but ' .. (row and row.status or 'without a row'), true)
      from = from - 1
    elseif hf.overdue_effect(ctx, row) then
      hf.tell(slice, 'effect ' .. id .. ': overdue; in the unknown list', true)
    end
  end
  slice.cursor = #listed < EFFECTS_A_SLICE and '' or tostring(from + #listed)
  return slice
end

local function sweep_deadline(ctx, slice, id)
  local row, is_damaged = hf.read_delivery(ctx, id)
  if is_damaged then return ctx.now + LOOKED_AT_AGAIN_MS end
  if not row or row.state == 'failed' or hf.is_finished(row) then return nil end
  if hf.came_too_late(ctx, row) and row.state == 'queued' then
    hf.leave_lane(ctx, row)
    hf.fail_delivery(ctx, row, 'expired', 'sweep', 'deliver_by')
    hf.tell(slice, id .. ': deliver_by has passed', true)
    return nil
  end
  local idle = row.state == 'delivered' and not hf.is_executing(row)
  if row.execute_by and row.execute_by <= ctx.now and (idle or row.state == 'queued') then
    hf.leave_lane(ctx, row)
    hf.fail_delivery(ctx, row, 'expired', 'sweep', 'execute_by')
    hf.tell(slice, id .. ': execute_by has passed', true)
    return nil
  end
  if row.execute_by and row.execute_by > ctx.now then return row.execute_by end
  -- Claimed, held or executing: looked at again, for it may come back.
  return ctx.now + LOOKED_AT_AGAIN_MS
end

-- Deadlines: what nobody claimed, or began, in time fails, also where no node lives.
function hf.sweep_deadlines(ctx)
  local slice = hf.new_slice()
  local key = hf.key.deadlines(ctx.tag)
  hf.make_usable(ctx, slice, key, 'zset')
  local due = redis.call('ZRANGEBYSCORE', key, '-inf', ctx.now, 'LIMIT', 0, DEADLINES_A_SLICE)
  for _, id in ipairs(due) do
    local again_at = sweep_deadline(ctx, slice, id)
    if again_at then redis.call('ZADD', key, again_at, id) else redis.call('ZREM', key, id) end
  end
  slice.cursor = #due < DEADLINES_A_SLICE and '' or 'more'
  return slice
end

-- Rehome: where policy allows, sessions whose host is gone go to another that serves their scope.
function hf.sweep_rehome(ctx, cursor)
  local slice = hf.new_slice()
  if hf.setting(ctx, 'rehome_on_redrive') == 0 then return slice end
  local scanned = redis.call('ZSCAN', hf.key.sessions(ctx.tag), cursor == '' and '0' or cursor, 'COUNT', SESSIONS_A_SLICE)
  for at = 1, #scanned[2], 2 do
    local session = hf.session(ctx, scanned[2][at])
    if session and redis.call('ZCARD', hf.key.session_deliveries(ctx.tag, session.id)) > 0 then
      local from = session.host
      hf.rehome_on_redrive(ctx, session)
      if session.host ~= from then hf.tell(slice, 'session ' .. session.id .. ': from ' .. from .. ' to ' .. session.host, true) end
    end
  end
  slice.cursor = scanned[1] == '0' and '' or scanned[1]
  return slice
end
