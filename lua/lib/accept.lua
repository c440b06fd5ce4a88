-- Accept: one message stored with its key, its payload and the first of its deliveries, or nothing at all.

-- Splits `host:<h>` or `session:<s>`.
local function parse_recipient(text)
  local kind, name = string.match(text, '^(%a+):(.+)$')
  if kind == 'host' then
    hf.host_id(name)
  elseif kind == 'session' then
    hf.id(name, 'session')
  else
    hf.refuse('INVALID_ARGUMENT', 'a recipient is host:<h> or session:<s>, not "' .. text .. '"')
  end
  return kind, name
end

-- Named twice is named once.
function hf.read_recipients(argv, first)
  local recipients, seen = {}, {}
  for at = first, #argv do
    local text = argv[at]
    if not seen[text] then
      parse_recipient(text)
      seen[text] = true
      recipients[#recipients + 1] = text
    end
  end
  return recipients
end

-- The host a recipient is routed to now; refuses NO_ROUTE.
local function route(ctx, recipient)
  local kind, name = parse_recipient(recipient)
  if kind == 'host' then return name, nil end
  return hf.route_session(ctx, name), name
end

-- Refuses the whole message for one full host.
local function check_queue(ctx, recipients, most)
  for _, recipient in ipairs(recipients) do
    local host = route(ctx, recipient)
    local queued = redis.call('XLEN', hf.key.stream(ctx.tag, host))
    if queued >= most then
      hf.refuse('HOST_FULL', 'host ' .. host .. ' has ' .. queued .. ' entries queued, max_queued_per_host is ' .. most .. '; nothing was accepted')
    end
  end
end

-- Refuses before anything is written where a recipient has no route.
local function check_routes(ctx, recipients, inline)
  local closed = hf.setting(ctx, 'open_hosts') == 0
  local any_retired = redis.call('EXISTS', hf.key.retired(ctx.tag)) == 1
  for at, recipient in ipairs(recipients) do
    if at <= inline or closed or any_retired or string.sub(recipient, 1, 8) == 'session:' then
      local host = route(ctx, recipient)
      if at <= inline or closed then hf.route_host(ctx, host) end
      if any_retired and hf.is_retired(ctx, host) then
        hf.refuse('HOST_RETIRED', 'host ' .. host .. ' is retired; nothing was accepted')
      end
    end
  end
end

-- A host that was retired while a fan-out was under way: its deliveries are made, and held.
local function hold_where_retired(ctx, made)
  for _, delivery in ipairs(made) do
    if hf.is_retired(ctx, delivery[4]) then
      hf.hold_delivery(ctx, hf.read_delivery(ctx, delivery[2]), 'retired', 'fan_out')
      delivery[8] = 'held'
    end
  end
end

-- When a delivery is to be looked at, should nobody claim or begin it before; nil without a deadline.
local function first_deadline(header)
  local deliver_by, execute_by = tonumber(header.deliver_by), tonumber(header.execute_by)
  return deliver_by and execute_by and math.min(deliver_by, execute_by) or deliver_by or execute_by
end

-- Makes deliveries number `first` and on, one per recipient; answers them for the reply.
function hf.make_deliveries(ctx, message, header, recipients, first)
  local made = {}
  for at, recipient in ipairs(recipients) do
    local host, session = route(ctx, recipient)
    local known = hf.route_host(ctx, host)
    hf.register_host(ctx, host, known.known)
    if not known.group_made then hf.make_group(ctx, host) end
    known.known, known.group_made = true, true
    local id = message .. '.' .. (first + at - 1)
    local entry = hf.enqueue(ctx, host, id)
    local row = {
      'HSET', hf.key.delivery(ctx.tag, id), 'message', message, 'host', host, 'conversation', header.conversation,
      'state', 'queued', 'epoch', 0, 'attempts', 0, 'entry', entry, 'queued_at', ctx.now,
    }
    for _, name in ipairs({ 'deliver_by', 'execute_by' }) do
      if header[name] then
        row[#row + 1] = name
        row[#row + 1] = header[name]
      end
    end
    if session then
      row[#row + 1] = 'session'
      row[#row + 1] = session
    end
    redis.call(unpack(row))
    local deadline = first_deadline(header)
    if deadline then redis.call('ZADD', hf.key.deadlines(ctx.tag), deadline, id) end
    if session then
      local place = redis.call('HINCRBY', hf.key.session(ctx.tag, session), 'deliveries_made', 1)
      redis.call('ZADD', hf.key.session_deliveries(ctx.tag, session), place, id)
    end
    made[at] = { 'id', id, 'host', host, 'session', session or '', 'state', 'queued' }
  end
  hf.count(ctx, 'queued', #recipients)
  hold_where_retired(ctx, made)
  return made
end

-- A sortable id from the log entry that records the accept: `<ms>-<seq>`, the sequence padded.
local function message_id(log_id)
  local ms, sequence = string.match(log_id, '^(%d+)%-(%d+)$')
  return string.format('%s-%06d', ms, tonumber(sequence))
end

local function mint_id(ctx, header, total)
  for _ = 1, 3 do
    local id = message_id(hf.write_log(ctx, 'accept', header.sender, { 'key', header.key, 'recipients', total }))
    if redis.call('EXISTS', hf.key.message(ctx.tag, id)) == 0 then return id end
  end
  hf.refuse('RECORD_DAMAGED', 'the log mints ids that exist already; the clock of the server went back')
end

local function store_message(ctx, id, header, payload, total, inline)
  local row = {
    'HSET', hf.key.message(ctx.tag, id), 'conversation', header.conversation, 'sender', header.sender, 'key', header.key,
    'recipients', total, 'made', inline, 'bytes', #payload, 'sha256', header.sha256, 'accepted_at', ctx.now,
  }
  for _, name in ipairs({ 'parent', 'content_type', 'deliver_by', 'execute_by', 'resend_of' }) do
    if header[name] then
      row[#row + 1] = name
      row[#row + 1] = header[name]
    end
  end
  if total == 0 then
    row[#row + 1] = 'settled_at'
    row[#row + 1] = ctx.now
    ctx.settled_messages[1] = id
  end
  redis.call(unpack(row))
  redis.call('SET', hf.key.payload(ctx.tag, id), payload)
  redis.call('SET', hf.key.idempotency(ctx.tag, header.key), id .. ' ' .. header.fingerprint)
end

local function owe_the_rest(ctx, id, recipients, inline)
  for first = inline + 1, #recipients, 1000 do
    redis.call('RPUSH', hf.key.recipients(ctx.tag, id), unpack(recipients, first, math.min(first + 999, #recipients)))
  end
  redis.call('ZADD', hf.key.obligations(ctx.tag), ctx.now, id)
end

-- The first answer again: same key, same fingerprint.
local function replay(ctx, header, known)
  local id, fingerprint = string.match(known, '^(%S+) (%S+)$')
  if fingerprint ~= header.fingerprint then
    hf.refuse('IDEMPOTENCY_MISMATCH', 'key "' .. header.key .. '" belongs to message ' .. tostring(id) .. ' with other content')
  end
  local counted = redis.call('HMGET', hf.key.message(ctx.tag, id), 'recipients', 'made')
  if not counted[1] then hf.refuse('MESSAGE_NOT_FOUND', id .. ' of key "' .. header.key .. '" is not in the record') end
  return {
    'id', id, 'replayed', 1, 'recipients', tonumber(counted[1]), 'made', tonumber(counted[2]),
    'log_id', hf.last_log_id(ctx), 'deliveries', {},
  }
end

function hf.accept(ctx, header, payload, recipients)
  local known = redis.call('GET', hf.key.idempotency(ctx.tag, header.key))
  if known then return replay(ctx, header, known) end
  local largest = hf.setting(ctx, 'max_payload_bytes')
  if #payload > largest then
    hf.refuse('PAYLOAD_TOO_LARGE', 'the payload has ' .. #payload .. ' bytes, max_payload_bytes is ' .. largest)
  end
  local most = hf.setting(ctx, 'max_recipients')
  if #recipients > most then
    hf.refuse('TOO_MANY_RECIPIENTS', #recipients .. ' recipients, max_recipients is ' .. most)
  end
  local inline = math.min(#recipients, hf.setting(ctx, 'inline_fan_out'))
  check_routes(ctx, recipients, inline)
  local most_queued = hf.setting(ctx, 'max_queued_per_host')
  if most_queued > 0 then check_queue(ctx, recipients, most_queued) end
  hf.expect_type(hf.key.counts(ctx.tag), 'hash')

  hf.count(ctx, 'recipients', #recipients)
  for at = 1, inline do hf.wakes(ctx, (route(ctx, recipients[at]))) end
  local id = mint_id(ctx, header, #recipients)
  store_message(ctx, id, header, payload, #recipients, inline)
  local first = {}
  for at = 1, inline do first[at] = recipients[at] end
  local made = hf.make_deliveries(ctx, id, header, first, 1)
  if inline < #recipients then owe_the_rest(ctx, id, recipients, inline) end
  hf.finish(ctx)
  return {
    'id', id, 'replayed', 0, 'recipients', #recipients, 'made', inline, 'log_id', ctx.log_id, 'deliveries', made,
  }
end

-- Fan-out: the next chunk of what a message still owes. Harmless to repeat.
function hf.fan_out(ctx, id, chunk)
  local key = hf.key.message(ctx.tag, id)
  local row = redis.call('HMGET', key, 'conversation', 'deliver_by', 'execute_by', 'recipients', 'made', 'sender')
  if not row[1] then hf.refuse('MESSAGE_NOT_FOUND', 'no message ' .. id) end
  local header = { conversation = row[1], deliver_by = row[2] or nil, execute_by = row[3] or nil }
  local total, made_before = tonumber(row[4]), tonumber(row[5])
  local owed = redis.call('LRANGE', hf.key.recipients(ctx.tag, id), 0, chunk - 1)
  if made_before + #owed < total and #owed < chunk then
    hf.refuse('RECORD_DAMAGED', 'message ' .. id .. ' owes ' .. (total - made_before) .. ' deliveries but names only ' .. #owed)
  end
  for _, recipient in ipairs(owed) do hf.route_host(ctx, (route(ctx, recipient))) end
  local made = hf.make_deliveries(ctx, id, header, owed, made_before + 1)
  if #owed > 0 then
    redis.call('LTRIM', hf.key.recipients(ctx.tag, id), #owed, -1)
    redis.call('HSET', key, 'made', made_before + #owed)
  end
  if made_before + #owed >= total then redis.call('ZREM', hf.key.obligations(ctx.tag), id) end
  local extra = #owed > 0 and { 'message', id, 'first', made_before + 1, 'last', made_before + #owed } or nil
  hf.finish(ctx, 'fan_out', row[6] or 'hub', extra)
  return {
    'id', id, 'recipients', total, 'made', made_before + #owed, 'log_id', hf.last_log_id(ctx), 'deliveries', made,
  }
end
