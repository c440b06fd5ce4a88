-- Reconcile lists: the hub's own indexes, the other way round: types, and members whose rows say otherwise.

local MEMBERS_A_SLICE = 200

-- The hub-wide keys by type. A wrong one is set aside, so that it fills again; but never the fences, for that would
-- lift them all: until somebody mends them nothing is claimed.
function hf.reconcile_types(ctx, repair)
  local found = {}
  local keys = {
    { hf.key.config(ctx.tag), 'hash' }, { hf.key.hosts(ctx.tag), 'set' }, { hf.key.nodes(ctx.tag), 'zset' },
    { hf.key.held(ctx.tag), 'zset' }, { hf.key.unknown(ctx.tag), 'zset' }, { hf.key.obligations(ctx.tag), 'zset' },
    { hf.key.holding(ctx.tag), 'set' }, { hf.key.parked_hosts(ctx.tag), 'set' }, { hf.key.sessions(ctx.tag), 'zset' },
    { hf.key.effects(ctx.tag), 'zset' }, { hf.key.executing(ctx.tag), 'zset' }, { hf.key.counts(ctx.tag), 'hash' },
    { hf.key.settled_days(ctx.tag), 'set' }, { hf.key.settled_effect_days(ctx.tag), 'set' },
    { hf.key.deadlines(ctx.tag), 'zset' }, { hf.key.stranded(ctx.tag), 'zset' }, { hf.key.liveness(ctx.tag), 'hash' },
    { hf.key.retired(ctx.tag), 'set' }, { hf.key.log(ctx.tag), 'stream' },
  }
  for _, each in ipairs(keys) do
    hf.usable(ctx, each[1], each[2], found, repair, each[1])
  end
  local fences = redis.call('TYPE', hf.key.fences(ctx.tag))['ok']
  if fences ~= 'none' and fences ~= 'hash' then
    hf.note(found, 'wrong_type', 'is a ' .. fences .. ', not a hash: nothing is claimed until somebody mends it', false, hf.key.fences(ctx.tag))
  end
  return found
end

local function held_elsewhere(ctx, id)
  local row, is_damaged = hf.read_delivery(ctx, id)
  if is_damaged or row and row.state == 'held' then return nil end
  return row and 'in the held queue, but ' .. row.state or 'in the held queue, but without a row'
end

local function known_elsewhere(ctx, member)
  local effect = string.match(member, '^effect:(.+)$')
  if effect then
    local row = hf.read_effect(ctx, effect)
    if row and row.status == 'executing' then return nil end
    return 'in the unknown list, but ' .. (row and row.status or 'without a row')
  end
  local delivery, number = hf.parse_attempt(member)
  local row, is_damaged = hf.read_delivery(ctx, delivery or member)
  if is_damaged then return nil end
  if not row then return 'in the unknown list, but without a row' end
  if not delivery then
    return row.state ~= 'unknown' and 'in the unknown list, but ' .. row.state or nil
  end
  if number == row.attempts and hf.is_executing(row) then return nil end
  return 'in the unknown list, but settled'
end

local LISTS = { held = held_elsewhere, unknown = known_elsewhere }

-- A slice of the held queue or the unknown list: members whose rows are elsewhere leave it.
function hf.reconcile_list(ctx, name, cursor, repair)
  local key, found = hf.key[name](ctx.tag), {}
  if redis.call('TYPE', key)['ok'] ~= 'zset' then return found, '' end
  local scanned = redis.call('ZSCAN', key, cursor == '' and '0' or cursor, 'COUNT', MEMBERS_A_SLICE)
  for at = 1, #scanned[2], 2 do
    local member = scanned[2][at]
    local why = LISTS[name](ctx, member)
    if why then
      hf.note(found, 'listed_wrongly', why, repair, member)
      if repair then redis.call('ZREM', key, member) end
    end
  end
  return found, scanned[1] == '0' and '' or scanned[1]
end

-- Effects, sessions and nodes: rows that their lists do not name.
function hf.reconcile_effect(ctx, id, repair, found)
  local row = redis.call('TYPE', hf.key.effect(ctx.tag, id))['ok'] == 'hash' and hf.read_effect(ctx, id)
  if not row then return hf.note(found, 'row_damaged', 'its row lacks what decides', false, hf.key.effect(ctx.tag, id)) end
  if not redis.call('ZSCORE', hf.key.effects(ctx.tag), id) then
    hf.note(found, 'unlisted', 'the effects do not list it', repair, 'effect ' .. id)
    if repair then redis.call('ZADD', hf.key.effects(ctx.tag), row.started_at or ctx.now, id) end
  end
  if row.status == 'executing' and row.unknown_reason ~= '' and not redis.call('ZSCORE', hf.key.unknown(ctx.tag), hf.unknown_member(row)) then
    hf.note(found, 'unlisted', 'the unknown list does not name it', repair, 'effect ' .. id)
    if repair then redis.call('ZADD', hf.key.unknown(ctx.tag), ctx.now, hf.unknown_member(row)) end
  end
  if row.status == 'executing' and not redis.call('ZSCORE', hf.key.executing(ctx.tag), id) then
    hf.note(found, 'unlisted', 'executing, but not listed so', repair, 'effect ' .. id)
    if repair then redis.call('ZADD', hf.key.executing(ctx.tag), row.started_at or ctx.now, id) end
  end
end

-- A node, `<host>/<node>`: its host's row names it, so that its peers know of it.
function hf.reconcile_node(ctx, name, repair, found)
  local host, id = string.match(name, '^([^/]+)/(.+)$')
  id = id and hf.unescape(id)
  local key = host and hf.key.node(ctx.tag, host, id)
  local node = key and redis.call('TYPE', key)['ok'] == 'hash' and hf.read_node(ctx, host, id)
  if not node then return hf.note(found, 'row_damaged', 'its row lacks what decides', false, 'node ' .. name) end
  if not hf.usable(ctx, hf.key.host(ctx.tag, host), 'hash', {}, false) then return end
  if node.state ~= 'left' and not redis.call('ZSCORE', hf.key.nodes(ctx.tag), host .. '/' .. id) then
    hf.note(found, 'unlisted', 'the nodes do not list it', repair, 'node ' .. name)
    if repair then redis.call('ZADD', hf.key.nodes(ctx.tag), node.heartbeat_at, host .. '/' .. id) end
  end
  if redis.call('HEXISTS', hf.key.host(ctx.tag, host), 'node:' .. id) == 0 then
    hf.note(found, 'unlisted', 'the row of its host does not name it', repair, 'node ' .. name)
    if repair then
      hf.register_host(ctx, host, redis.call('HEXISTS', hf.key.host(ctx.tag, host), 'first_seen_at') == 1)
      redis.call('HSET', hf.key.host(ctx.tag, host), 'node:' .. id, ctx.now, 'joined_at', ctx.now, 'peers_look_at', 0)
    end
  end
end

function hf.reconcile_session(ctx, id, repair, found)
  local key = hf.key.session(ctx.tag, id)
  local row = redis.call('TYPE', key)['ok'] == 'hash' and hf.session(ctx, id)
  if not row then return hf.note(found, 'row_damaged', 'its row lacks what decides', false, key) end
  if not redis.call('ZSCORE', hf.key.sessions(ctx.tag), id) then
    hf.note(found, 'unlisted', 'the sessions do not list it', repair, 'session ' .. id)
    if repair then redis.call('ZADD', hf.key.sessions(ctx.tag), tonumber(row.opened_at) or ctx.now, id) end
  end
  local children = hf.key.children(ctx.tag, row.parent)
  if row.parent ~= '' and not hf.usable(ctx, children, 'set', found, repair, 'session ' .. row.parent) then return end
  if row.parent ~= '' and redis.call('SISMEMBER', hf.key.children(ctx.tag, row.parent), id) == 0 then
    hf.note(found, 'unlisted', 'its parent ' .. row.parent .. ' does not list it', repair, 'session ' .. id)
    if repair then redis.call('SADD', hf.key.children(ctx.tag, row.parent), id) end
  end
  if row.moving_from ~= '' and not redis.call('ZSCORE', hf.key.obligations(ctx.tag), 'session:' .. id) then
    hf.note(found, 'unlisted', 'its move is not complete, and the obligations do not list it', repair, 'session ' .. id)
    if repair then redis.call('ZADD', hf.key.obligations(ctx.tag), ctx.now, 'session:' .. id) end
  end
end

function hf.found_reply(ctx, found, cursor)
  local words, repaired = {}, {}
  for _, each in ipairs(found) do
    words[#words + 1] = each.about
    words[#words + 1] = each.code
    words[#words + 1] = each.what
    words[#words + 1] = each.repaired and 1 or 0
    if each.repaired then repaired[#repaired + 1] = each.about end
  end
  hf.finish(ctx, 'reconcile_lists', 'sweep', #repaired > 0 and { 'repaired', table.concat(repaired, ' ') } or nil)
  return { 'cursor', cursor, 'found', words }
end
