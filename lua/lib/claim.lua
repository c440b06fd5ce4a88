-- Claim: what a node may take on next. Served in this order, each in a bounded number: the repeated request,
-- the node's own of an earlier process, un-parked ones, those of gone nodes of the host, then new ones.

local LOOKED_AT_MOST = 256
-- What is read at once of a delivery that is new.
local FIELDS = { 'state', 'epoch', 'host', 'entry', 'conversation', 'session', 'parked_by', 'deliver_by', 'attempts' }

function hf.look_again_at(claim, at)
  if not claim.next_at or at < claim.next_at then claim.next_at = at end
end

-- The message's header, read once a claim; nil when the row is missing.
local function header_of(ctx, claim, message)
  local header = claim.headers[message]
  if header == nil then
    local values = redis.call('HMGET', hf.key.message(ctx.tag, message), 'conversation', 'sender', 'parent', 'content_type',
      'sha256', 'bytes')
    header = values[1] and {
      conversation = values[1],
      sender = values[2],
      parent = values[3] or '',
      content_type = values[4] or '',
      sha256 = values[5],
      bytes = tonumber(values[6]) or 0,
    } or false
    claim.headers[message] = header
  end
  return header or nil
end

-- Whether one more delivery fits, by number and by bytes; the first always does.
function hf.has_room(ctx, claim, row)
  if claim.full or #claim.granted >= claim.count then
    claim.full = true
  elseif #claim.granted > 0 then
    local header = header_of(ctx, claim, row.message)
    if header and header.bytes > claim.bytes_left then claim.full = true end
  end
  if claim.full then claim.more = true end
  return not claim.full
end

-- Writes the new owner and adds the delivery to the answer. `how`: new, parked, resume or takeover.
function hf.grant_claim(ctx, claim, row, how)
  local header = header_of(ctx, claim, row.message)
  local node = claim.node
  local epoch = hf.next_epoch(ctx, row.epoch)
  if how == 'resume' or how == 'takeover' then
    hf.write_delivery(ctx, row, row.state, 'epoch', epoch, 'owner', node.id, 'incarnation', node.incarnation,
      how == 'resume' and 'resumed_at' or 'taken_over_at', ctx.now, 'taken_from', row.previous, 'takeovers', row.takeovers)
  else
    hf.write_delivery(ctx, row, 'claimed', 'epoch', epoch, 'owner', node.id, 'incarnation', node.incarnation,
      'claimed_at', ctx.at)
  end
  if how == 'takeover' then hf.count(ctx, 'takeovers', 1) end
  row.epoch = epoch
  claim.bytes_left = claim.bytes_left - (header and header.bytes or 0)
  claim.granted[#claim.granted + 1] = { id = row.id, epoch = epoch, state = row.state, how = how, row = row }
end

-- The delivery an entry names, or nil when the entry is gone from the stream.
function hf.entry_delivery(ctx, claim, entry)
  local found = redis.call('XRANGE', hf.key.stream(ctx.tag, claim.node.host), entry, entry)
  return found[1] and found[1][2][2] or nil
end

-- A pending entry that the stream no longer holds: cleared from the pending list and reported, once.
function hf.clear_ghost(ctx, claim, entry)
  redis.call('XACK', hf.key.stream(ctx.tag, claim.node.host), 'nodes', entry)
  claim.ghosts[#claim.ghosts + 1] = entry
end

-- A pending entry that its row does not agree with: the row is the truth. Of a damaged row it stays pending, so that a
-- sweep finds it when the row was mended.
function hf.correct_entry(ctx, claim, entry, id, row, is_damaged, consumer)
  local stream = hf.key.stream(ctx.tag, claim.node.host)
  if is_damaged then
    claim.missing[#claim.missing + 1] = id
  elseif not row then
    redis.call('XACK', stream, 'nodes', entry) -- the entry stays in the stream as evidence
    claim.missing[#claim.missing + 1] = id
  elseif row.entry ~= entry or (row.state ~= 'queued' and row.state ~= 'claimed' and row.state ~= 'mirrored') then
    hf.leave_stream(ctx, claim.node.host, entry)
  elseif row.state == 'queued' then
    claim.acknowledge[#claim.acknowledge + 1] = entry -- parked: listed by its lane
  elseif row.owner ~= consumer then
    redis.call('XCLAIM', stream, 'nodes', row.owner, 0, entry, 'JUSTID')
  end
end

-- A block or a hold stops a delivery; a hold that expires is looked at again then.
function hf.stop_in_claim(ctx, claim, row, fence)
  hf.stop_by(ctx, row, fence, claim.node.name)
  if fence.kind == 'hold' and fence.expires_at then hf.look_again_at(claim, fence.expires_at) end
end

-- Decides about a queued delivery whose entry is pending under this node: claimed, parked, or failed.
function hf.offer(ctx, claim, row)
  local home = hf.home_of(ctx, row)
  if home ~= row.host then return hf.move_delivery(ctx, row, home, claim.node.name) end
  local lane = hf.lane_name(row.conversation, row.session)
  local fence = hf.fence_over(ctx, row)
  if hf.came_too_late(ctx, row) then
    hf.fail_delivery(ctx, row, 'expired', 'deadline', 'deliver_by')
  elseif fence and fence.kind ~= 'pause' then
    hf.stop_in_claim(ctx, claim, row, fence)
  elseif fence then
    hf.park(ctx, claim, row, lane, fence.field)
    if fence.expires_at then
      hf.look_again_at(claim, fence.expires_at)
      claim.parked_until = math.min(claim.parked_until or fence.expires_at, fence.expires_at)
    end
  elseif hf.lane_is_parked(ctx, claim, lane) then
    hf.park(ctx, claim, row, lane, 'lane')
  elseif not header_of(ctx, claim, row.message) then
    claim.acknowledge[#claim.acknowledge + 1] = row.entry
    claim.missing[#claim.missing + 1] = row.message
  else
    hf.grant_claim(ctx, claim, row, 'new')
  end
end

-- Reads entries that nobody was given yet. A group that was taken away by hand is made again at 0: the
-- rows decide what an entry seen twice means.
local function read_new(ctx, claim, count)
  local stream = hf.key.stream(ctx.tag, claim.node.host)
  local read = { 'XREADGROUP', 'GROUP', 'nodes', claim.node.id, 'COUNT', count, 'STREAMS', stream, '>' }
  local reply = redis.pcall(unpack(read))
  if type(reply) == 'table' and reply.err then
    if not string.find(reply.err, 'NOGROUP', 1, true) then error(reply) end
    if redis.call('EXISTS', stream) == 0 then return {} end
    hf.make_group(ctx, claim.node.host)
    reply = redis.call(unpack(read))
  end
  return reply and reply[1] and reply[1][2] or {}
end

local function serve_new(ctx, claim)
  local looked = 0
  local largest = hf.setting(ctx, 'max_payload_bytes')
  while not claim.full do
    local room = claim.count - #claim.granted
    if room <= 0 or (#claim.granted > 0 and claim.bytes_left < largest) or looked >= LOOKED_AT_MOST then
      claim.more = true
      return
    end
    local batch = math.max(1, math.min(room, math.floor(claim.bytes_left / largest)))
    local entries = read_new(ctx, claim, batch)
    for _, entry in ipairs(entries) do
      local id = entry[2][2]
      local row, is_damaged = hf.read_delivery(ctx, id, FIELDS)
      if row and row.entry == entry[1] and row.state == 'queued' and not row.parked_by then
        hf.offer(ctx, claim, row)
      else
        hf.correct_entry(ctx, claim, entry[1], id, row, is_damaged, claim.node.id)
      end
    end
    looked = looked + #entries
    if #entries < batch then return end
  end
end

-- What a delivery has none of is left out.
local function add_present(reply, name, value)
  if not value or value == '' then return end
  reply[#reply + 1] = name
  reply[#reply + 1] = value
end

local function delivery_reply(ctx, claim, granted)
  local row = granted.row
  local reply = {
    'id', granted.id, 'epoch', granted.epoch, 'state', granted.state, 'how', granted.how, 'attempts', row.attempts,
    'conversation', row.conversation, 'message', row.message,
    'payload', redis.call('GET', hf.key.payload(ctx.tag, row.message)) or '',
  }
  if row.session then
    local session = hf.session(ctx, row.session)
    add_present(reply, 'session', row.session)
    add_present(reply, 'session_epoch', session and session.epoch)
  end
  local header = header_of(ctx, claim, row.message)
  if header then
    add_present(reply, 'sender', header.sender)
    add_present(reply, 'parent', header.parent)
    add_present(reply, 'content_type', header.content_type)
    add_present(reply, 'sha256', header.sha256)
  end
  return reply
end

local function last_id(key)
  local last = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)
  return last[1] and last[1][1] or '0-0'
end

local function claim_reply(ctx, claim)
  local deliveries = {}
  for at, granted in ipairs(claim.granted) do deliveries[at] = delivery_reply(ctx, claim, granted) end
  return {
    'log_id', hf.last_log_id(ctx), 'now', ctx.now, 'more', claim.more and 1 or 0, 'again', claim.again and 1 or 0, 'next_at_ms', claim.next_at or 0,
    'stream_id', last_id(hf.key.stream(ctx.tag, claim.node.host)),
    'bell_id', last_id(hf.key.bell(ctx.tag, claim.node.host)),
    'ghosts', claim.ghosts, 'missing', claim.missing, 'deliveries', deliveries,
  }
end

-- The first answer again: the same deliveries and epochs, their states current.
local function answer_again(ctx, claim)
  for id, epoch, how in string.gmatch(claim.node.request_answer, '(%S+):(%d+):(%a+)') do
    local row = hf.read_delivery(ctx, id)
    if row then
      claim.granted[#claim.granted + 1] = { id = id, epoch = tonumber(epoch), state = row.state, how = how, row = row }
    end
  end
  claim.more, claim.again = true, true
  return claim_reply(ctx, claim)
end

local function keep_answer(ctx, claim, request)
  local words = {}
  for at, granted in ipairs(claim.granted) do
    words[at] = granted.id .. ':' .. granted.epoch .. ':' .. granted.how
  end
  redis.call('HSET', hf.key.node(ctx.tag, claim.node.host, claim.node.id), 'request', request, 'request_answer',
    table.concat(words, ' '))
end

local function report_damage(claim)
  local extra = {}
  for _, name in ipairs({ 'ghosts', 'missing' }) do
    if #claim[name] > 0 then
      extra[#extra + 1] = name
      extra[#extra + 1] = table.concat(claim[name], ' ')
    end
  end
  return #extra > 0 and extra or nil
end

function hf.claim(ctx, node, request, count, open_if_empty)
  local claim = {
    node = node, count = count, bytes_left = hf.setting(ctx, 'max_claim_bytes'), granted = {}, headers = {}, parking = {},
    acknowledge = {}, ghosts = {}, missing = {}, more = false, full = false,
  }
  if request < node.request then
    hf.refuse('STALE_REQUEST', 'request ' .. request .. ' of node ' .. node.name .. ' comes after request ' .. node.request)
  end
  if request == node.request then return answer_again(ctx, claim) end

  hf.release_lapsed(ctx, claim)
  hf.serve_own(ctx, claim)
  hf.serve_parked(ctx, claim)
  hf.serve_stale(ctx, claim)
  serve_new(ctx, claim)
  hf.finish_parking(ctx, claim)
  if #claim.acknowledge > 0 then
    redis.call('XACK', hf.key.stream(ctx.tag, node.host), 'nodes', unpack(claim.acknowledge))
  end
  if #claim.granted > 0 or not open_if_empty then keep_answer(ctx, claim, request) end
  hf.finish(ctx, 'claim', node.name, report_damage(claim))
  return claim_reply(ctx, claim)
end
