-- Delivery rows and the ways they move. Callers have checked the transition; these write it.

-- The fields that decide.
local ROW = {
  'host', 'session', 'conversation', 'state', 'epoch', 'owner', 'incarnation', 'entry', 'attempts',
  'attempt_status', 'takeovers', 'deliver_by', 'execute_by', 'parked_by', 'held_reason', 'held_fence', 'released_at',
  'released_holds', 'redrive_from', 'failed_code', 'claimed_at', 'held_by',
}

local IS_NUMBER = {
  epoch = true, incarnation = true, attempts = true, takeovers = true, deliver_by = true, execute_by = true,
  released_at = true, redrive_from = true,
}
local NONE_IS_ZERO = { attempts = true, takeovers = true, redrive_from = true }

-- Sets, made once of a list of names.
local sets = {}

local function set_of(names)
  if not sets[names] then
    local set = {}
    for _, name in ipairs(names) do set[name] = true end
    sets[names] = set
  end
  return sets[names]
end

-- What no row is without; an entry, while it is in its stream.
local NEEDED = { 'state', 'epoch', 'host', 'conversation' }
local IN_STREAM = { queued = true, claimed = true, mirrored = true }

-- False where a value is none that was ever written there.
local function fill(row, fields, values)
  local is_sound = true
  for at, name in ipairs(fields) do
    local value = values[at]
    if IS_NUMBER[name] then
      if value and not tonumber(value) then is_sound = false end
      value = value and tonumber(value) or NONE_IS_ZERO[name] and 0
    end
    if value and rawget(row, name) == nil then row[name] = value end
  end
  return is_sound
end

-- Whether nothing that decides is missing, as far as it was read.
local function is_whole(row, is_read)
  for _, name in ipairs(NEEDED) do
    if is_read[name] and not rawget(row, name) then return false end
  end
  if not is_read.entry or not IN_STREAM[row.state] then return true end
  return string.find(rawget(row, 'entry') or '', '^%d+%-%d+$') ~= nil
end

-- Answers whether it was there and sound, and whether something was there.
local function read_fields(ctx, row, fields)
  local values = redis.pcall('HMGET', hf.key.delivery(ctx.tag, row.id), unpack(fields))
  if values.err then return false, true end
  if fill(row, fields, values) and is_whole(row, set_of(fields)) then return true, true end
  return false, redis.call('EXISTS', hf.key.delivery(ctx.tag, row.id)) == 1
end

-- The row of a delivery, or nil when there is none that can be read; then the second answer is true where the key exists:
-- somebody damaged it, and nothing is decided by it. A step may name the fields that it needs in most cases: they are
-- read at once, and the first of the others that is asked for brings the whole row.
function hf.read_delivery(ctx, id, fields)
  local row = { id = id, message = hf.message_of(id) }
  local is_sound, is_there = read_fields(ctx, row, fields or ROW)
  if not is_sound then return nil, is_there end
  if not fields then return row end
  local is_read = set_of(fields)
  return setmetatable(row, {
    __index = function(_, name)
      if is_read[name] or not set_of(ROW)[name] then return nil end
      setmetatable(row, nil)
      read_fields(ctx, row, ROW)
      return row[name]
    end,
  })
end

-- What a step has yet to write of a row: written in one command with what follows, or before anything else is.
function hf.write_pending(ctx, row, ...)
  local fields, more = row.pending or {}, { ... }
  local length = #fields
  row.pending = nil
  for at = 1, #more do fields[length + at] = more[at] end
  if #fields > 0 then redis.call('HSET', hf.key.delivery(ctx.tag, row.id), unpack(fields)) end
end

-- deliver_by counts until the first claim.
function hf.came_too_late(ctx, row)
  return row.deliver_by and not row.claimed_at and row.deliver_by <= ctx.now
end

function hf.is_executing(row) return row.attempt_status == 'executing' end

function hf.is_finished(row) return row.attempt_status == 'done' or row.attempt_status == 'terminal' end

-- Writes fields of a row, and with `to` a transition, in one command.
function hf.write_delivery(ctx, row, to, ...)
  local from = row.state
  redis.call('HSET', hf.key.delivery(ctx.tag, row.id), 'state', to, ...)
  if from ~= to then
    hf.count(ctx, from, -1)
    hf.count(ctx, to, 1)
  end
  hf.note_move(ctx, row.id, from, to)
  row.state = to
end

-- Takes a delivery out of whatever index its state keeps it in.
function hf.unlist(ctx, row)
  if row.state == 'queued' or row.state == 'claimed' or row.state == 'mirrored' then
    hf.leave_stream(ctx, row.host, row.entry)
  elseif row.state == 'delivered' then
    hf.stop_awaiting(ctx, row.host, row.id)
  elseif row.state == 'held' then
    hf.leave_held(ctx, row)
  elseif row.state == 'unknown' then
    redis.call('ZREM', hf.key.unknown(ctx.tag), row.id)
  end
end

-- A new entry at the end of a host's stream.
function hf.enqueue(ctx, host, id)
  hf.wakes(ctx, host)
  return redis.call('XADD', hf.key.stream(ctx.tag, host), '*', 'delivery', id)
end

-- Counts a settled delivery on its message; the last one starts the message's retention.
function hf.settle_on_message(ctx, row)
  if row.session then redis.call('ZREM', hf.key.session_deliveries(ctx.tag, row.session), row.id) end
  local key = hf.key.message(ctx.tag, row.message)
  local counted = redis.call('HMGET', key, 'recipients', 'settled')
  local recipients = tonumber(counted[1])
  if not recipients then return end
  local settled = (tonumber(counted[2]) or 0) + 1
  if settled >= recipients then
    redis.call('HSET', key, 'settled', settled, 'settled_at', ctx.at)
    ctx.settled_messages[#ctx.settled_messages + 1] = row.message
  else
    redis.call('HSET', key, 'settled', settled)
  end
end

-- To the held queue, with the reason kept. What a hold parked is also listed by that fence, so that lifting
-- it finds them.
function hf.hold_delivery(ctx, row, reason, actor, fence)
  hf.unlist(ctx, row)
  local epoch = hf.next_epoch(ctx, row.epoch)
  hf.write_delivery(ctx, row, 'held', 'held_at', ctx.now, 'held_reason', reason, 'held_by', actor,
    'epoch', epoch, 'held_fence', fence or '')
  redis.call('HDEL', hf.key.delivery(ctx.tag, row.id), 'owner', 'incarnation', 'parked_at', 'parked_by', 'released_at',
    'released_holds')
  redis.call('ZADD', hf.key.held(ctx.tag), ctx.now, row.id)
  if fence then
    redis.call('ZADD', hf.key.held_by(ctx.tag, fence), ctx.now, row.id)
    redis.call('SADD', hf.key.holding(ctx.tag), fence)
  end
  row.epoch, row.owner, row.incarnation, row.held_reason, row.held_fence = epoch, nil, nil, reason, fence
end

function hf.leave_held(ctx, row)
  redis.call('ZREM', hf.key.held(ctx.tag), row.id)
  if not row.held_fence or row.held_fence == '' then return end
  local list = hf.key.held_by(ctx.tag, row.held_fence)
  redis.call('ZREM', list, row.id)
  if redis.call('EXISTS', list) == 0 then redis.call('SREM', hf.key.holding(ctx.tag), row.held_fence) end
end

-- To failed, for good: no attempt is open, and none will be made.
function hf.fail_delivery(ctx, row, code, actor, detail)
  hf.unlist(ctx, row)
  hf.write_delivery(ctx, row, 'failed', 'failed_at', ctx.now, 'failed_code', code, 'failed_by', actor,
    'failed_detail', detail or '')
  redis.call('HDEL', hf.key.delivery(ctx.tag, row.id), 'parked_at', 'parked_by')
  hf.settle_on_message(ctx, row)
end

-- What a block or a hold does to a delivery that meets it.
function hf.stop_by(ctx, row, fence, actor)
  if fence.kind == 'block' then
    hf.fail_delivery(ctx, row, fence.code or 'blocked', 'fence', fence.field)
  else
    hf.hold_delivery(ctx, row, fence.reason or 'fence', actor, fence.field)
  end
end

-- Back to the end of the queue where it belongs now, with a new epoch and no owner; held where that host is retired.
function hf.requeue_delivery(ctx, row, actor, reason, ...)
  local home = hf.redrive_home(ctx, row)
  if hf.is_retired(ctx, home) then return hf.hold_delivery(ctx, row, 'retired', actor) end
  hf.unlist(ctx, row)
  row.host = home
  hf.need_group(ctx, home)
  local entry = hf.enqueue(ctx, home, row.id)
  local epoch = hf.next_epoch(ctx, row.epoch)
  hf.write_delivery(ctx, row, 'queued', 'host', home, 'entry', entry, 'requeued_at', ctx.now, 'requeued_by', actor,
    'requeued_reason', reason, 'epoch', epoch, ...)
  row.epoch, row.owner, row.incarnation = epoch, nil, nil
  redis.call('HDEL', hf.key.delivery(ctx.tag, row.id), 'owner', 'incarnation', 'parked_at', 'parked_by')
end

-- Lists an open attempt as unknown, once.
function hf.list_unknown(ctx, row, number, reason)
  local attempt = row.id .. '/' .. number
  if redis.call('ZADD', hf.key.unknown(ctx.tag), 'NX', ctx.now, attempt) == 0 then return false end
  redis.call('HSET', hf.key.delivery(ctx.tag, row.id), 'attempt_' .. number .. '_unknown_at', ctx.now,
    'attempt_' .. number .. '_unknown_reason', reason)
  return true
end

-- The answer to one item of a batch, as field-value pairs.
function hf.item_ok(row, ...)
  return { 'id', row.id, 'ok', 1, 'epoch', row.epoch, 'state', row.state, ... }
end

function hf.item_refused(id, code, row, detail)
  local item = { 'id', id, 'ok', 0, 'code', code }
  if row then
    item[7], item[8] = 'epoch', row.epoch
    item[9], item[10] = 'state', row.state
    item[11], item[12] = 'owner', row.owner or ''
  end
  if detail then
    item[#item + 1] = 'detail'
    item[#item + 1] = detail
  end
  return item
end

-- Compare-and-set on host, owner, incarnation and epoch: the code of the refusal, or nil when it holds.
function hf.check_owner(row, node, epoch)
  if row.host ~= node.host then return 'NOT_OWNER' end
  if row.epoch ~= epoch then return 'STALE_EPOCH' end
  if row.owner ~= node.id or row.incarnation ~= node.incarnation then return 'NOT_OWNER' end
  return nil
end
