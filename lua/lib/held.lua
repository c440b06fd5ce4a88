-- The held queue: what waits for someone. Holds that were lifted, lapsed or taken away by hand give back what
-- they parked, a slice at a time: in the lift itself, and in every claim of any host.

local REQUEUED_A_LOOK = 100
local FENCES_A_LOOK = 20

-- Requeues up to a slice of what a hold parked. Answers how many are left.
function hf.requeue_held_by(ctx, fence, actor)
  local list = hf.key.held_by(ctx.tag, fence)
  for _, id in ipairs(redis.call('ZRANGE', list, 0, REQUEUED_A_LOOK - 1)) do
    local row = hf.read_delivery(ctx, id)
    if row and row.state == 'held' and row.held_fence == fence then
      hf.requeue_delivery(ctx, row, actor, 'lifted ' .. fence)
    else
      redis.call('ZREM', list, id)
    end
  end
  local left = redis.call('ZCARD', list)
  if left == 0 then redis.call('SREM', hf.key.holding(ctx.tag), fence) end
  return left
end

-- Inside a claim: looks at some of the holds that keep something, and gives back where one stands no more.
function hf.release_lapsed(ctx, claim)
  for _, field in ipairs(redis.call('SRANDMEMBER', hf.key.holding(ctx.tag), FENCES_A_LOOK)) do
    local fence = hf.standing_fence(ctx, field)
    if not fence then
      if hf.requeue_held_by(ctx, field, 'lapsed') > 0 then claim.more = true end
    elseif fence.expires_at then
      hf.look_again_at(claim, fence.expires_at)
    end
  end
end

-- The row of a delivery that an operator names.
function hf.open_delivery(ctx, id)
  local row = hf.read_delivery(ctx, hf.delivery_id(id))
  if not row then hf.refuse('DELIVERY_NOT_FOUND', 'no delivery ' .. id .. ': never made, or older than the window') end
  return row
end

local function describe(row)
  return row.id .. ' is ' .. row.state .. (row.attempt_status and ', its last attempt ' .. row.attempt_status or '')
    .. ', at epoch ' .. row.epoch
end

-- The row, if it is in the held queue.
function hf.open_held(ctx, id)
  local row = hf.open_delivery(ctx, id)
  if row.state ~= 'held' then hf.refuse('NOT_HELD', describe(row)) end
  return row
end

-- The row, if nothing of it runs and nothing ever finished it.
function hf.open_idle(ctx, id)
  local row = hf.open_delivery(ctx, id)
  if hf.is_executing(row) then hf.refuse('EXECUTING', describe(row)) end
  if hf.is_finished(row) or row.state == 'failed' then hf.refuse('ALREADY_SETTLED', describe(row)) end
  if row.state == 'unknown' then hf.refuse('WRONG_STATE', describe(row) .. '; it is resolved, not moved') end
  return row
end

function hf.operator_reply(ctx, row)
  return { 'id', row.id, 'state', row.state, 'epoch', row.epoch, 'log_id', hf.last_log_id(ctx) }
end

-- A released delivery starts with clean counters, and passes the holds that stand now over where it goes.
function hf.release(ctx, row, actor, reason)
  local home = hf.redrive_home(ctx, row)
  if hf.is_retired(ctx, home) then
    hf.refuse('HOST_RETIRED', 'host ' .. home .. ' of ' .. row.id .. ' is retired; its deliveries wait for a rehome')
  end
  local holds = hf.holds_over(ctx, { host = home, conversation = row.conversation, session = row.session })
  hf.requeue_delivery(ctx, row, actor, reason, 'released_at', ctx.now, 'released_holds', holds, 'takeovers', 0,
    'redrive_from', row.attempts)
end

-- Epoch + 1, so that the owner's next step is refused.
function hf.cancel(ctx, row, actor, reason)
  hf.leave_lane(ctx, row)
  hf.fail_delivery(ctx, row, 'cancelled', actor, reason)
  row.epoch = hf.next_epoch(ctx, row.epoch)
  redis.call('HSET', hf.key.delivery(ctx.tag, row.id), 'epoch', row.epoch)
  redis.call('HDEL', hf.key.delivery(ctx.tag, row.id), 'owner', 'incarnation')
end
