-- What every call shares: identity check, one reading of the clock, and the index changes it collects.

local SCHEMA = '1'
local NAMED_AT_MOST = 256 -- hosts in one log entry

-- What is not answered before as many replicas have it as the setting wait_replicas says: what was accepted, claimed,
-- granted, settled, resolved or fenced; and so no node or hub sees an entry of the log that may yet be lost. A function
-- cannot wait: its reply says what its caller has to wait for.
local REPLICATED = {
  hf_accept = true, hf_accept_batch = true, hf_fan_out = true, hf_claim = true, hf_mirror = true, hf_ack = true,
  hf_refuse = true, hf_begin = true, hf_take = true, hf_report = true,
  hf_claim_effect = true, hf_take_over_effect = true, hf_settle_effect = true,
  hf_resolve_attempt = true, hf_resolve_delivery = true, hf_resolve_effect = true,
  hf_pause = true, hf_hold = true, hf_block = true, hf_lift = true,
}

-- Registers a function. Refusals become error replies; anything else is a fault and is passed on.
function hf.register(name, flags, handler)
  redis.register_function({
    function_name = name,
    flags = flags,
    callback = function(keys, argv)
      local answered, reply = pcall(handler, keys, argv)
      if answered then return REPLICATED[name] and hf.with_replicas(keys, reply) or reply end
      if type(reply) == 'table' and reply.refusal then return redis.error_reply(reply.refusal) end
      error(reply)
    end,
  })
end

-- `replicas` and `replicas_ms` come last in the reply of a call that its caller answers only then.
function hf.with_replicas(keys, reply)
  local ctx = { tag = keys[1] }
  local wanted = redis.call('HGET', hf.key.config(ctx.tag), 'wait_replicas')
  if not wanted or wanted == '0' then return reply end
  local replicas = hf.setting(ctx, 'wait_replicas')
  if replicas == 0 then return reply end
  local at = #reply
  reply[at + 1], reply[at + 2] = 'replicas', replicas
  reply[at + 3], reply[at + 4] = 'replicas_ms', hf.setting(ctx, 'wait_replicas_ms')
  return reply
end

function hf.now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- The tag of a hub, which is the one key of every function.
function hf.check_tag(keys)
  local tag = keys[1]
  if #keys ~= 1 or not string.find(tag, '^{[a-z0-9._-]+}$') then
    hf.refuse('INVALID_ARGUMENT', 'exactly one key is passed: the hub tag, such as {hf}')
  end
  return tag
end

-- Opens a call on an existing record: refuses STORE_UNKNOWN where there is none, or one of another layout.
function hf.open(keys)
  local tag = hf.check_tag(keys)
  local identity = redis.call('HMGET', hf.key.identity(tag), 'store_id', 'schema', 'generation', 'attested')
  if not identity[1] or not identity[3] then
    hf.refuse('STORE_UNKNOWN', 'there is no record under ' .. tag .. '; holdfast init makes one')
  end
  if identity[2] ~= SCHEMA then
    hf.refuse('STORE_UNKNOWN', 'the record under ' .. tag .. ' has schema ' .. tostring(identity[2]) .. ', these functions know ' .. SCHEMA)
  end
  local now = hf.now_ms()
  return {
    tag = tag,
    now = now,
    at = string.format('%d', now), -- the same as text: a number is written out anew by every command it goes into
    store_id = identity[1],
    generation = tonumber(identity[3]),
    attested = identity[4] or nil,
    counts = {},
    moves = {},
    leaving = {},
    awaiting_add = {},
    awaiting_remove = {},
    settled_messages = {},
    woken = {},
  }
end

hf.schema = SCHEMA
hf.EPOCH_OF_GENERATIONS_MS = 1735689600000 -- 2025-01-01: generations after a loss count minutes from here

-- Epochs only grow and are never reused, not even after history was lost.
function hf.next_epoch(ctx, epoch)
  return math.max(epoch + 1, ctx.generation * 1000000)
end

function hf.count(ctx, state, by)
  ctx.counts[state] = (ctx.counts[state] or 0) + by
end

-- Notes one transition for the counts and for the call's log entry.
function hf.note_move(ctx, id, from, to)
  local name = from .. '>' .. to
  local move = ctx.moves[name]
  if not move then
    move = { from = from, to = to, ids = {} }
    ctx.moves[name] = move
    ctx.moves[#ctx.moves + 1] = move
  end
  move.ids[#move.ids + 1] = id
end

local function add(lists, name, value)
  local list = lists[name]
  if not list then
    list = {}
    lists[name] = list
  end
  list[#list + 1] = value
end

-- An entry that leaves its stream and the pending list.
function hf.leave_stream(ctx, host, entry)
  add(ctx.leaving, host, entry)
end

function hf.await(ctx, host, id)
  add(ctx.awaiting_add, host, ctx.at)
  add(ctx.awaiting_add, host, id)
end

function hf.stop_awaiting(ctx, host, id)
  add(ctx.awaiting_remove, host, id)
end

-- The last entry of the log, for calls that write none.
function hf.last_log_id(ctx)
  if ctx.log_id then return ctx.log_id end
  local last = redis.call('XREVRANGE', hf.key.log(ctx.tag), '+', '-', 'COUNT', 1)
  return last[1] and last[1][1] or '0-0'
end

-- Notes that something became runnable on a host: the log entry names it, for those who wait by the log.
function hf.wakes(ctx, host)
  if ctx.woken[host] then return end
  ctx.woken[host] = true
  ctx.woken[#ctx.woken + 1] = host
end

-- Appends the call's one log entry: verb, actor, then ids/from/to for every kind of transition in it, and the
-- hosts where something became runnable (`*`: too many to name).
function hf.write_log(ctx, verb, actor, extra)
  local entry = { 'XADD', hf.key.log(ctx.tag), 'MAXLEN', '~', hf.setting(ctx, 'log_length'), '*', 'verb', verb, 'actor', actor }
  for _, move in ipairs(ctx.moves) do
    local at = #entry
    entry[at + 1], entry[at + 2] = 'ids', table.concat(move.ids, ' ')
    entry[at + 3], entry[at + 4] = 'from', move.from
    entry[at + 5], entry[at + 6] = 'to', move.to
  end
  for _, word in ipairs(extra or {}) do entry[#entry + 1] = word end
  if #ctx.woken > 0 then
    entry[#entry + 1] = 'hosts'
    entry[#entry + 1] = #ctx.woken > NAMED_AT_MOST and '*' or table.concat(ctx.woken, ' ')
  end
  ctx.log_id = redis.call(unpack(entry))
  return ctx.log_id
end

local function apply_lists(lists, command, key_of, tag)
  for host, values in pairs(lists) do
    redis.call(command, key_of(tag, host), unpack(values))
  end
end

-- Applies what the call collected, once per list, and writes the log entry when anything moved.
function hf.finish(ctx, verb, actor, extra)
  for host, entries in pairs(ctx.leaving) do
    local stream = hf.key.stream(ctx.tag, host)
    redis.call('XACK', stream, 'nodes', unpack(entries))
    redis.call('XDEL', stream, unpack(entries))
  end
  -- What was added and removed in one call is gone.
  apply_lists(ctx.awaiting_add, 'ZADD', hf.key.awaiting, ctx.tag)
  apply_lists(ctx.awaiting_remove, 'ZREM', hf.key.awaiting, ctx.tag)
  for state, by in pairs(ctx.counts) do
    if by ~= 0 then redis.call('HINCRBY', hf.key.counts(ctx.tag), state, by) end
  end
  if #ctx.settled_messages > 0 then
    local day = math.floor(ctx.now / 86400000)
    redis.call('RPUSH', hf.key.settled(ctx.tag, day), unpack(ctx.settled_messages))
    redis.call('SADD', hf.key.settled_days(ctx.tag), day)
  end
  if #ctx.moves > 0 or extra then hf.write_log(ctx, verb, actor, extra) end
end

-- Wakes the nodes of a host without a new entry in its stream.
function hf.ring(ctx, host, why)
  hf.wakes(ctx, host)
  redis.call('XADD', hf.key.bell(ctx.tag, host), 'MAXLEN', 1, '*', 'why', why)
end

-- Refuses when a key that is about to be written holds another type.
function hf.expect_type(key, type_name)
  local found = redis.call('TYPE', key)['ok']
  if found ~= 'none' and found ~= type_name then
    hf.refuse('RECORD_DAMAGED', key .. ' is a ' .. found .. ', not a ' .. type_name)
  end
end
