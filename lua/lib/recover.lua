-- Recovery inside a claim: the node's own deliveries of an earlier process (resume), and those of nodes of
-- the same host that are gone (takeover). It is always compare-and-set, never release: the row's owner and
-- epoch are read and written in this one call.

local PENDING_A_LOOK = 100
local AWAITING_A_LOOK = 100
local START, DONE = 'start', 'done' -- places of a walk besides its cursors

local function pending_of(ctx, claim, consumer, after)
  local from = after and '(' .. after or '-'
  local stream = hf.key.stream(ctx.tag, claim.node.host)
  local entries = redis.pcall('XPENDING', stream, 'nodes', from, '+', PENDING_A_LOOK, consumer)
  if entries.err then
    if string.find(entries.err, 'NOGROUP', 1, true) then return {} end
    error(entries)
  end
  return entries
end

-- A counted recovery is handed out alone, so that a delivery which kills its node buries no neighbour.
local function must_wait(ctx, claim, row, crashed)
  if (crashed and #claim.granted > 0) or not hf.has_room(ctx, claim, row) then
    claim.more = true
    claim.full = true
    return true
  end
  return false
end

-- Whether the process that owned a delivery left cleanly: then recovering it does not count.
function hf.left_cleanly(ctx, row)
  ctx.left = ctx.left or {}
  local owner = row.host .. '/' .. row.owner
  if ctx.left[owner] == nil then
    ctx.left[owner] = redis.call('HGET', hf.key.node(ctx.tag, row.host, row.owner), 'left_incarnations') or ''
  end
  return string.find(ctx.left[owner], ' ' .. row.incarnation .. ' ', 1, true) ~= nil
end

-- Gives an unfinished, idle delivery of a gone process to the claiming one. False when the claim is full.
local function recover(ctx, claim, row, how)
  local home = hf.home_of(ctx, row)
  if home ~= row.host then
    hf.move_delivery(ctx, row, home, claim.node.name)
    return true
  end
  local crashed = not hf.left_cleanly(ctx, row)
  if must_wait(ctx, claim, row, crashed) then return false end
  local takeovers = row.takeovers + (crashed and 1 or 0)
  if crashed and takeovers >= hf.setting(ctx, 'max_takeovers') then
    redis.call('HSET', hf.key.delivery(ctx.tag, row.id), 'takeovers', takeovers)
    hf.hold_delivery(ctx, row, 'poison', claim.node.name)
    return true
  end
  if row.state ~= 'delivered' and row.owner ~= claim.node.id then
    redis.call('XCLAIM', hf.key.stream(ctx.tag, claim.node.host), 'nodes', claim.node.id, 0, row.entry, 'JUSTID')
  end
  row.previous = row.owner .. '#' .. row.incarnation
  row.takeovers = takeovers
  hf.grant_claim(ctx, claim, row, how)
  if crashed then
    claim.more = true
    claim.full = true
  end
  return true
end

local function is_gone(claim, row, consumer)
  return row.owner == consumer and (consumer ~= claim.node.id or row.incarnation < claim.node.incarnation)
end

-- One entry of the pending list of `consumer`. False when the claim is full.
local function recover_entry(ctx, claim, entry, consumer, how)
  local id = hf.entry_delivery(ctx, claim, entry)
  if not id then
    hf.clear_ghost(ctx, claim, entry)
    return true
  end
  local row, is_damaged = hf.read_delivery(ctx, id)
  if row and row.entry == entry and (row.state == 'claimed' or row.state == 'mirrored') and is_gone(claim, row, consumer) then
    return recover(ctx, claim, row, how)
  end
  if row and row.entry == entry and row.state == 'queued' and not row.parked_by then
    -- Read by someone who is no node: it was never claimed.
    if must_wait(ctx, claim, row, false) then return false end
    redis.call('XCLAIM', hf.key.stream(ctx.tag, claim.node.host), 'nodes', claim.node.id, 0, entry, 'JUSTID')
    hf.offer(ctx, claim, row)
    return true
  end
  hf.correct_entry(ctx, claim, entry, id, row, is_damaged, consumer)
  return true
end

-- Walks a pending list from `after`; answers the last entry done with, and whether the end was reached.
local function walk_pending(ctx, claim, consumer, after, how)
  local entries = pending_of(ctx, claim, consumer, after)
  for _, entry in ipairs(entries) do
    if not recover_entry(ctx, claim, entry[1], consumer, how) then return after, false end
    after = entry[1]
  end
  return after, #entries < PENDING_A_LOOK
end

-- The next of the host's delivered and unsettled, oldest first, after a cursor `<score> <id>`. Ranks would
-- shift under the walk; scores alone may be shared by many.
function hf.awaiting_after(ctx, host, cursor)
  local score, last_id = string.match(cursor, '^(%d+) (%S+)$')
  local found, offset = {}, 0
  while true do
    local page = redis.call('ZRANGEBYSCORE', hf.key.awaiting(ctx.tag, host), score or '-inf', '+inf', 'WITHSCORES', 'LIMIT',
      offset, AWAITING_A_LOOK)
    for at = 1, #page, 2 do
      if page[at + 1] ~= score or page[at] > last_id then
        found[#found + 1] = { id = page[at], cursor = page[at + 1] .. ' ' .. page[at] }
      end
    end
    local ended = #page < 2 * AWAITING_A_LOOK
    if #found > 0 or ended then return found, ended end
    offset = offset + AWAITING_A_LOOK
  end
end

-- One slice of the host's delivered and unsettled: idle ones of gone owners change hands, open attempts of
-- gone executors become visible as unknown. Answers the next cursor (START at the end), not moved past what
-- did not fit.
local function walk_awaiting(ctx, claim, cursor, owners)
  local slice, ended = hf.awaiting_after(ctx, claim.node.host, cursor)
  for _, found in ipairs(slice) do
    local row = hf.read_delivery(ctx, found.id)
    local owner = row and row.state == 'delivered' and row.owner and owners[row.owner]
    if owner and is_gone(claim, row, row.owner) then
      if hf.is_executing(row) then
        if hf.list_unknown(ctx, row, row.attempts, owner.reason) then
          hf.note_move(ctx, row.id .. '/' .. row.attempts, 'executing', 'unknown')
        end
      elseif not hf.is_finished(row) and not recover(ctx, claim, row, owner.how) then
        return cursor
      end
    end
    cursor = found.cursor
  end
  return ended and START or cursor
end

-- The node's own deliveries of its earlier processes: those handed off first, then those still pending.
function hf.serve_own(ctx, claim)
  local node = claim.node
  if not node.resume then return end
  local key = hf.key.node(ctx.tag, node.host, node.id)
  local awaiting, pending = node.resume_awaiting or START, node.resume_pending
  if awaiting ~= DONE then
    local owners = { [node.id] = { how = 'resume', reason = 'superseded' } }
    awaiting = walk_awaiting(ctx, claim, awaiting, owners)
    if awaiting == START and not claim.full then awaiting = DONE end
  end
  if awaiting == DONE and not claim.full then
    local ended
    pending, ended = walk_pending(ctx, claim, node.id, pending, 'resume')
    if ended then
      redis.call('HDEL', key, 'resume', 'resume_pending', 'resume_awaiting')
      return
    end
  end
  claim.more = true
  redis.call('HSET', key, 'resume_awaiting', awaiting)
  if pending then redis.call('HSET', key, 'resume_pending', pending) end
end

-- Entries that were read by a consumer which is no node of this host.
local function serve_strangers(ctx, claim)
  local stream = hf.key.stream(ctx.tag, claim.node.host)
  local consumers = redis.pcall('XINFO', 'CONSUMERS', stream, 'nodes')
  if consumers.err then return true end
  for _, consumer in ipairs(consumers) do
    local name, pending = consumer[2], consumer[4]
    if pending > 0 and name ~= claim.node.id and redis.call('EXISTS', hf.key.node(ctx.tag, claim.node.host, name)) == 0 then
      local _, ended = walk_pending(ctx, claim, name, nil, 'takeover')
      if not ended then return false end
    end
  end
  return true
end

-- Deliveries of the host's nodes that left or are stale. Looked for when the host row says so: at once after
-- a join or leave, else when the next peer could have become stale.
function hf.serve_stale(ctx, claim)
  if claim.full then return end
  local node, host_key = claim.node, hf.key.host(ctx.tag, claim.node.host)
  local last = redis.call('HMGET', host_key, 'peers_look_at', 'peers_cursor')
  local look_at = tonumber(last[1]) or 0
  if ctx.now < look_at and look_at - ctx.now <= hf.setting(ctx, 'stale_after_ms') then
    hf.look_again_at(claim, look_at)
    return
  end
  local gone, next_at = hf.gone_peers(ctx, node)
  local ended = serve_strangers(ctx, claim)
  local owners = {}
  for _, peer in ipairs(gone) do
    owners[peer.id] = { how = 'takeover', reason = peer.how }
  end
  -- Handed off before pending: so a lane keeps its order.
  local cursor = last[2] or START
  if #gone > 0 and not claim.full then cursor = walk_awaiting(ctx, claim, cursor, owners) end
  for _, peer in ipairs(gone) do
    if cursor == START and not claim.full then
      local _, peer_ended = walk_pending(ctx, claim, peer.id, nil, 'takeover')
      ended = ended and peer_ended
    end
  end
  if claim.full or not ended or cursor ~= START then
    claim.more = true
    look_at = 0
  else
    look_at = math.min(next_at or math.huge, ctx.now + hf.setting(ctx, 'stale_after_ms'))
    hf.look_again_at(claim, look_at)
  end
  redis.call('HSET', host_key, 'peers_look_at', look_at, 'peers_cursor', cursor)
end
