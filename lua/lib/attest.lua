-- Attestation: whether this server still holds all that its nodes and hubs saw. Every start and every promotion gives a
-- server another replication id; until that id is attested nothing is granted.

local WAITED_FOR_NAMED = 10
local HOSTS_A_CALL = 200
local SET_ASIDE = 'history_lost'

local function replication()
  local info = redis.call('INFO', 'replication')
  return string.match(info, 'master_replid:(%x+)'), string.match(info, 'second_repl_offset:(%-?%d+)') ~= '-1'
end

function hf.replication_id()
  local id = replication()
  return id
end

-- Refuses while the record is not proven to be whole, or what is unfinished on this host is being set aside.
function hf.require_attested(ctx, host)
  local id = replication()
  if ctx.attested ~= id then
    hf.refuse('NOT_ATTESTED', 'the server started anew or took over; its record is compared with what nodes and hubs saw (replication id '
      .. string.sub(id, 1, 8) .. ', attested ' .. string.sub(ctx.attested or 'none', 1, 8) .. ')')
  end
  if host and redis.call('HEXISTS', hf.key.doubted(ctx.tag), host) == 1 then
    hf.refuse('NOT_ATTESTED', 'the record lost history; what is unfinished on host ' .. host .. ' is being set aside as unknown')
  end
end

-- A log id as two numbers; nothing for any other text.
local function places(id)
  local ms, sequence = string.match(id, '^(%d+)%-(%d+)$')
  return tonumber(ms), tonumber(sequence)
end

local function is_before(a, b)
  local a_ms, a_sequence = places(a)
  local b_ms, b_sequence = places(b)
  return a_ms < b_ms or a_ms == b_ms and a_sequence < b_sequence
end

local function last_made(log)
  local stream = redis.pcall('XINFO', 'STREAM', log)
  for at = 1, #stream, 2 do
    if stream[at] == 'last-generated-id' then return stream[at + 1] end
  end
  return '0-0'
end

-- Whether an entry that somebody saw is gone: not older than this record and the first entry of its log, and not there.
local function is_missing(ctx, seen)
  local ms = places(seen)
  if not ms or ms < (tonumber(redis.call('HGET', hf.key.identity(ctx.tag), 'made_at')) or 1) then return false end
  local log = hf.key.log(ctx.tag)
  if #redis.call('XRANGE', log, seen, seen, 'COUNT', 1) > 0 then return false end
  local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
  if first then return not is_before(seen, first[1]) end
  return is_before(last_made(log), seen)
end

-- A message that was accepted, and is gone with the entry of the log that recorded it: its id tells which that is.
function hf.is_lost(ctx, message)
  local ms, sequence = places(message)
  if not ms or redis.call('EXISTS', hf.key.message(ctx.tag, message)) == 1 then return false end
  return is_missing(ctx, string.format('%d-%d', ms, math.floor(sequence / 100)))
end

-- The record is behind what somebody saw of it. Losses of before the last one that was dealt with are known.
local function declare_lost(ctx, seen, who)
  local rewound_at = tonumber(redis.call('HGET', hf.key.identity(ctx.tag), 'rewound_at')) or 0
  if places(seen) < rewound_at then return end
  redis.call('HSET', hf.key.identity(ctx.tag), 'lost_entry', seen, 'lost_seen_by', who, 'lost_at', ctx.now)
  redis.call('HDEL', hf.key.identity(ctx.tag), 'attested')
  ctx.attested = nil
end

-- Begins to compare, once for every replication id: which nodes lived is read before the first of them speaks again.
local function begin_comparing(ctx, id)
  local key = hf.key.identity(ctx.tag)
  local known = redis.call('HMGET', key, 'attesting', 'attesting_since', 'attesting_from')
  if known[1] == id and tonumber(known[2]) <= ctx.now then return tonumber(known[2]), tonumber(known[3]) end
  local newest = redis.call('ZREVRANGE', hf.key.nodes(ctx.tag), 0, 0, 'WITHSCORES')
  local from = (tonumber(newest[2]) or 0) - hf.setting(ctx, 'stale_after_ms')
  redis.call('HSET', key, 'attesting', id, 'attesting_since', ctx.now, 'attesting_from', from)
  redis.call('HDEL', key, 'attesting_cursor')
  return ctx.now, from
end

-- What is unfinished on the host is going to be set aside, for this node: it did not show what it saw, or its entry is gone.
local function doubt_host(ctx, host, node)
  if redis.call('HSETNX', hf.key.doubted(ctx.tag), host, 'start') == 0 then return end
  redis.call('HSET', hf.key.host(ctx.tag, host), 'set_aside_for', node)
end

-- A node tells what it saw last, once to every server: with its first join or heartbeat under a new replication id.
function hf.present(ctx, host, node, seen)
  local id = replication()
  local key = hf.key.node(ctx.tag, host, node)
  if ctx.attested ~= id then begin_comparing(ctx, id) end
  if redis.call('HGET', key, 'presented') == id then return end
  redis.call('HSET', key, 'presented', id, 'presented_log_id', seen)
  -- What its host was set aside for is dealt with, however often it is presented.
  local set_aside_at = tonumber(redis.call('HGET', hf.key.host(ctx.tag, host), 'set_aside_at')) or 0
  if not is_missing(ctx, seen) or places(seen) < set_aside_at then
    redis.call('HDEL', key, 'lost_entry')
    return
  end
  redis.call('HSET', key, 'lost_entry', seen)
  declare_lost(ctx, seen, host .. '/' .. node)
  doubt_host(ctx, host, node)
end

-- Nodes that lived when the comparison began and have not spoken since.
local function unheard(ctx, id, from)
  local names = {}
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', hf.key.nodes(ctx.tag), from, '+inf')) do
    local host, node = string.match(name, '^([^/]+)/(.+)$')
    local known = redis.call('HMGET', hf.key.node(ctx.tag, host, node), 'presented', 'state')
    if known[1] ~= id and known[2] == 'live' and not hf.is_retired(ctx, host) then
      names[#names + 1] = name
      if #names == WAITED_FOR_NAMED then break end
    end
  end
  return names
end

-- A node of the host that has not shown that the record is not behind what it saw. Who left cleanly ran nothing.
local function unproven(ctx, host, id)
  for _, field in ipairs(redis.call('HKEYS', hf.key.host(ctx.tag, host))) do
    local node = string.match(field, '^node:(.+)$')
    if node then
      local known = redis.call('HMGET', hf.key.node(ctx.tag, host, node), 'presented', 'lost_entry', 'state')
      if known[3] ~= 'left' and (known[1] ~= id or known[2]) then return node end
    end
  end
  return nil
end

-- Looks at a slice of the hosts. True at the end.
local function look_at_hosts(ctx, id)
  local key = hf.key.identity(ctx.tag)
  local cursor = redis.call('HGET', key, 'attesting_cursor') or '0'
  local slice = redis.call('SSCAN', hf.key.hosts(ctx.tag), cursor, 'COUNT', HOSTS_A_CALL)
  for _, host in ipairs(slice[2]) do
    local node = unproven(ctx, host, id)
    if node then doubt_host(ctx, host, node) end
  end
  redis.call('HSET', key, 'attesting_cursor', slice[1])
  return slice[1] == '0'
end

local function attested(ctx, id)
  local key = hf.key.identity(ctx.tag)
  redis.call('HSET', key, 'attested', id, 'attested_at', ctx.now)
  redis.call('HDEL', key, 'attesting', 'attesting_since', 'attesting_from', 'attesting_cursor')
  ctx.attested = id
end

-- Epochs go on above every one that the lost history may have given.
local function raise_generation(ctx, id, why)
  local minutes = math.floor((ctx.now - hf.EPOCH_OF_GENERATIONS_MS) / 60000)
  ctx.generation = math.max(ctx.generation + 1, minutes)
  redis.call('HSET', hf.key.identity(ctx.tag), 'generation', ctx.generation, 'rewound_at', ctx.now, 'rewound_why', why)
  redis.call('HDEL', hf.key.identity(ctx.tag), 'lost_entry', 'lost_seen_by', 'lost_at')
  attested(ctx, id)
end

-- Why the record cannot be taken for whole; nil where it can.
local function doubt(ctx, appendfsync, was_replica)
  local lost = redis.call('HMGET', hf.key.identity(ctx.tag), 'lost_entry', 'lost_seen_by')
  if lost[1] then return 'log entry ' .. lost[1] .. ', seen by ' .. lost[2] .. ', is gone' end
  if was_replica then return 'the server was a replica' end
  if appendfsync == 'unseen' and hf.setting(ctx, 'accept_unseen_config') == 1 then return nil end
  if appendfsync ~= 'always' then return 'appendfsync is ' .. appendfsync end
  return nil
end

local function set_one_aside(ctx, id, entry, host)
  local row = hf.read_delivery(ctx, id)
  if not row then return false end
  if row.host ~= host then return true end
  if hf.is_executing(row) then
    if hf.list_unknown(ctx, row, row.attempts, SET_ASIDE) then
      hf.note_move(ctx, row.id .. '/' .. row.attempts, 'executing', 'unknown')
    end
  elseif not hf.is_finished(row) and (not entry or row.entry == entry) then
    hf.unlist(ctx, row)
    row.epoch = hf.next_epoch(ctx, row.epoch)
    hf.write_delivery(ctx, row, 'unknown', 'epoch', row.epoch, 'unknown_at', ctx.now, 'unknown_reason', SET_ASIDE)
    redis.call('HDEL', hf.key.delivery(ctx.tag, row.id), 'parked_at', 'parked_by')
    redis.call('ZADD', hf.key.unknown(ctx.tag), ctx.now, row.id)
  end
  return true
end

-- A slice of what is unfinished on one host in doubt becomes unknown. True while there is more; and the host.
local function set_aside(ctx)
  local doubted = redis.call('HRANDFIELD', hf.key.doubted(ctx.tag))
  if not doubted then return false, nil end
  local cursor = redis.call('HGET', hf.key.doubted(ctx.tag), doubted)
  local next_cursor, more = hf.host_slice(ctx, doubted, cursor, set_one_aside)
  if more then
    redis.call('HSET', hf.key.doubted(ctx.tag), doubted, next_cursor)
    return true, doubted
  end
  redis.call('HDEL', hf.key.doubted(ctx.tag), doubted)
  redis.call('HSET', hf.key.host(ctx.tag, doubted), 'set_aside_at', ctx.now)
  hf.ring(ctx, doubted, 'attested')
  return redis.call('EXISTS', hf.key.doubted(ctx.tag)) == 1, doubted
end

-- What the log tells of a slice, beside its moves: for which node its host was doubted.
local function told_of(ctx, doubted)
  if not doubted or #ctx.moves == 0 then return nil end
  local node = redis.call('HGET', hf.key.host(ctx.tag, doubted), 'set_aside_for')
  return node and { 'for', doubted .. '/' .. node }
end

local function attest_reply(ctx, more, waited_for)
  return {
    'attested', ctx.attested == hf.replication_id() and 1 or 0, 'more', more and 1 or 0, 'generation', ctx.generation,
    'waited_for', table.concat(waited_for or {}, ' '), 'log_id', hf.last_log_id(ctx), 'replication_id', hf.replication_id(),
  }
end

-- One bounded step towards an attested record, by anyone who sees how the server writes: `more` asks for the next.
-- What a presenter has presented to this server before is not judged again: only a hand can have taken it since.
-- How another server writes (`config_of`) says nothing of this one.
function hf.attest(ctx, presenter, seen, appendfsync, presented_to, config_of)
  local id, was_replica = replication()
  if config_of and config_of ~= '' and config_of ~= id then return attest_reply(ctx, false) end
  if presented_to ~= id and is_missing(ctx, seen) then declare_lost(ctx, seen, presenter) end
  if ctx.attested == id then
    local more, doubted = set_aside(ctx)
    hf.finish(ctx, 'set_aside', presenter, told_of(ctx, doubted))
    return attest_reply(ctx, more)
  end
  local since, from = begin_comparing(ctx, id)
  local waited_for = unheard(ctx, id, from)
  if #waited_for > 0 and ctx.now - since < hf.setting(ctx, 'stale_after_ms') then
    return attest_reply(ctx, false, waited_for)
  end
  local why = doubt(ctx, appendfsync, was_replica)
  if not why then
    attested(ctx, id)
    hf.finish(ctx, 'attest', presenter, { 'replication_id', id })
    return attest_reply(ctx, redis.call('EXISTS', hf.key.doubted(ctx.tag)) == 1)
  end
  if not look_at_hosts(ctx, id) then return attest_reply(ctx, true) end
  raise_generation(ctx, id, why)
  hf.finish(ctx, 'history_lost', presenter, { 'generation', ctx.generation, 'why', why })
  return attest_reply(ctx, true)
end
