-- Parking: what a pause stops keeps its place. A parked entry is acknowledged but stays in the stream; its
-- delivery is listed in its lane, and later ones of the lane park behind it.

local LANES_A_LOOK = 64
local LOOK_EVERY_MS = 5000
local LOOKED_AT_MOST = 256

local function has_parked_lanes(ctx, claim)
  if claim.parked_lanes == nil then
    claim.parked_lanes = redis.call('ZCARD', hf.key.parked(ctx.tag, claim.node.host))
  end
  return claim.parked_lanes > 0
end

-- True when earlier deliveries of this lane are parked, so that this one must wait behind them.
function hf.lane_is_parked(ctx, claim, lane)
  if claim.parking[lane] then return true end
  if not has_parked_lanes(ctx, claim) then return false end
  return redis.call('ZSCORE', hf.key.parked(ctx.tag, claim.node.host), lane) and true or false
end

function hf.park(ctx, claim, row, lane, behind)
  claim.parking[lane] = claim.parking[lane] or {}
  table.insert(claim.parking[lane], row.id)
  claim.acknowledge[#claim.acknowledge + 1] = row.entry
  redis.call('HSET', hf.key.delivery(ctx.tag, row.id), 'parked_at', ctx.now, 'parked_by', behind)
  hf.note_move(ctx, row.id, 'queued', 'parked')
end

-- Writes the lanes that this claim parked in.
function hf.finish_parking(ctx, claim)
  local host = claim.node.host
  for lane, ids in pairs(claim.parking) do
    redis.call('RPUSH', hf.key.lane(ctx.tag, host, lane), unpack(ids))
    redis.call('ZADD', hf.key.parked(ctx.tag, host), 'NX', ctx.now, lane)
    redis.call('SADD', hf.key.parked_hosts(ctx.tag), host)
  end
  local look_at = claim.parked_until and tonumber(redis.call('HGET', hf.key.host(ctx.tag, host), 'parked_look_at'))
  if look_at and claim.parked_until < look_at then
    redis.call('HSET', hf.key.host(ctx.tag, host), 'parked_look_at', claim.parked_until)
  end
end

-- A parked delivery that an operator moves leaves its lane at once.
function hf.leave_lane(ctx, row)
  if row.state ~= 'queued' or not row.parked_by then return end
  local lane = hf.lane_name(row.conversation, row.session)
  local list, parked = hf.key.lane(ctx.tag, row.host, lane), hf.key.parked(ctx.tag, row.host)
  redis.call('LREM', list, 1, row.id)
  if redis.call('EXISTS', list) == 1 then return end
  redis.call('ZREM', parked, lane)
  if redis.call('EXISTS', parked) == 0 then redis.call('SREM', hf.key.parked_hosts(ctx.tag), row.host) end
end

local function next_of_lane(ctx, claim, lane)
  local list = hf.key.lane(ctx.tag, claim.node.host, lane)
  while claim.looked < LOOKED_AT_MOST do
    local id = redis.call('LINDEX', list, 0)
    if not id then return nil end
    claim.looked = claim.looked + 1
    local row = hf.read_delivery(ctx, id)
    if row and row.state == 'queued' and row.parked_by and row.host == claim.node.host then return row end
    redis.call('LPOP', list) -- it moved on by other ways
  end
  return nil
end

local function unpark(ctx, claim, row)
  local stream = hf.key.stream(ctx.tag, claim.node.host)
  local take = { 'XCLAIM', stream, 'nodes', claim.node.id, 0, row.entry, 'FORCE', 'JUSTID' }
  local taken = redis.pcall(unpack(take))
  if taken.err then
    if not string.find(taken.err, 'NOGROUP', 1, true) then error(taken) end
    hf.make_group(ctx, claim.node.host)
    taken = redis.call(unpack(take))
  end
  if #taken == 0 then
    hf.requeue_delivery(ctx, row, 'claim', 'its stream entry was gone')
    return
  end
  redis.call('HDEL', hf.key.delivery(ctx.tag, row.id), 'parked_at', 'parked_by')
  hf.grant_claim(ctx, claim, row, 'parked')
end

-- Serves one lane in which a pause is not the strictest fence. Answers how far it came: `empty`; `full`, when
-- the claim is; or `paused`, at a delivery that was released from a hold and meets a pause under it.
local function serve_lane(ctx, claim, lane)
  local list = hf.key.lane(ctx.tag, claim.node.host, lane)
  local row = next_of_lane(ctx, claim, lane)
  while row do
    local fence = hf.fence_over(ctx, row)
    local home = hf.home_of(ctx, row)
    if home ~= row.host then
      hf.move_delivery(ctx, row, home, claim.node.name) -- and it leaves the lane by itself
    elseif fence and fence.kind ~= 'pause' then
      hf.stop_in_claim(ctx, claim, row, fence)
    elseif fence then
      return 'paused'
    elseif hf.came_too_late(ctx, row) then
      hf.fail_delivery(ctx, row, 'expired', 'deadline', 'deliver_by')
    elseif hf.has_room(ctx, claim, row) then
      unpark(ctx, claim, row)
    else
      return 'full'
    end
    if home == row.host or row.state == 'held' then redis.call('LREM', list, 1, row.id) end
    row = next_of_lane(ctx, claim, lane)
  end
  return redis.call('LLEN', list) == 0 and 'empty' or 'full'
end

local function forget_lane(ctx, claim, lane)
  local host = claim.node.host
  redis.call('ZREM', hf.key.parked(ctx.tag, host), lane)
  claim.parked_lanes = claim.parked_lanes - 1
  if claim.parked_lanes == 0 then redis.call('SREM', hf.key.parked_hosts(ctx.tag), host) end
end

-- Looks at a slice of the parked lanes; answers false when the claim got full in it.
local function look_at_lanes(ctx, claim, lanes)
  for at = 1, #lanes, 2 do
    local lane = lanes[at]
    local conversation, session = hf.lane_parts(lane)
    local fence = hf.fence_over_lane(ctx, claim.node.host, conversation, session)
    if fence and fence.kind == 'pause' then
      if fence.expires_at then hf.look_again_at(claim, fence.expires_at) end
    else
      local came = serve_lane(ctx, claim, lane)
      if came == 'full' then return false end
      if came == 'empty' then forget_lane(ctx, claim, lane) end
    end
  end
  return true
end

-- Serves parked lanes, a slice a claim. A pass starts when the bell was rung, when a fence expires, and
-- every few seconds for fences that were taken away by hand.
function hf.serve_parked(ctx, claim)
  if claim.full or not has_parked_lanes(ctx, claim) then return end
  local host_key = hf.key.host(ctx.tag, claim.node.host)
  local pass = redis.call('HMGET', host_key, 'parked_cursor', 'parked_bell', 'parked_look_at')
  local rung = redis.call('XREVRANGE', hf.key.bell(ctx.tag, claim.node.host), '+', '-', 'COUNT', 1)
  local bell = rung[1] and rung[1][1] or '0-0'
  local cursor, look_at = pass[1] or '0', tonumber(pass[3]) or 0
  if cursor == '0' and bell == pass[2] and ctx.now < look_at then
    hf.look_again_at(claim, look_at)
    return
  end
  if cursor == '0' then look_at = ctx.now + LOOK_EVERY_MS else bell = pass[2] or bell end
  local slice = redis.call('ZSCAN', hf.key.parked(ctx.tag, claim.node.host), cursor, 'COUNT', LANES_A_LOOK)
  claim.looked = 0
  local ended = look_at_lanes(ctx, claim, slice[2])
  if ended then cursor = slice[1] end
  local unfinished = cursor ~= '0' or not ended
  if claim.next_at and claim.next_at < look_at then look_at = claim.next_at end
  if unfinished then claim.more = true else hf.look_again_at(claim, look_at) end
  redis.call('HSET', host_key, 'parked_cursor', cursor, 'parked_bell', ended and bell or '', 'parked_look_at', look_at)
end
