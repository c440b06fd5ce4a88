-- Accept: messages stored with their keys, their payloads and the first of their deliveries, each of them wholly
-- or not at all. First everything is checked, then it is written.

local SEQUENCES_A_CALL = 100 -- message ids that one entry of the log stands for

-- Refuses the whole message for one full host; what this call accepted before it counts too.
local function check_queue(ctx, recipients, most)
  for _, recipient in ipairs(recipients) do
    local host = hf.route(ctx, recipient)
    local queued = redis.call('XLEN', hf.key.stream(ctx.tag, host)) + (ctx.queuing[host] or 0)
    if queued >= most then
      hf.refuse('HOST_FULL', 'host ' .. host .. ' has ' .. queued .. ' entries queued, max_queued_per_host is ' .. most .. '; nothing was accepted')
    end
  end
end

local function any_retired(ctx)
  if ctx.any_retired == nil then ctx.any_retired = redis.call('EXISTS', hf.key.retired(ctx.tag)) == 1 end
  return ctx.any_retired
end

-- Refuses before anything is written where a recipient has no route.
local function check_routes(ctx, recipients, inline)
  local closed = hf.setting(ctx, 'open_hosts') == 0
  local every = closed or any_retired(ctx)
  for at, recipient in ipairs(recipients) do
    if at <= inline or every or hf.is_session(recipient) then
      local host = hf.route(ctx, recipient)
      if at <= inline or closed then hf.route_host(ctx, host) end
      if any_retired(ctx) and hf.is_retired(ctx, host) then
        hf.refuse('HOST_RETIRED', 'host ' .. host .. ' is retired; nothing was accepted')
      end
    end
  end
end

-- The ids of so many messages, from the id of the log entry that records their acceptance: `<ms>-<n>`, where n is
-- a hundred times the entry's sequence, and on. Sortable, and unique because the entry's id is.
local function ids_of(log_id, total)
  local ms, sequence = string.match(log_id, '^(%d+)%-(%d+)$')
  local ids, first = {}, tonumber(sequence) * SEQUENCES_A_CALL
  for at = 1, total do ids[at] = string.format('%s-%08d', ms, first + at - 1) end
  return ids
end

local function are_free(ctx, ids)
  for _, id in ipairs(ids) do
    if redis.call('EXISTS', hf.key.message(ctx.tag, id)) == 1 then return false end
  end
  return true
end

-- Writes the entry of the log, and answers the ids that follow from it.
local function mint_ids(ctx, fresh)
  local actor, total = fresh[1].header.sender, 0
  for _, item in ipairs(fresh) do
    total = total + #item.recipients
    if item.header.sender ~= actor then actor = 'several' end
  end
  local extra = #fresh == 1 and { 'key', fresh[1].header.key, 'recipients', total } or { 'messages', #fresh, 'recipients', total }
  for _ = 1, 3 do
    local ids = ids_of(hf.write_log(ctx, 'accept', actor, extra), #fresh)
    if are_free(ctx, ids) then return ids end
  end
  hf.refuse('RECORD_DAMAGED', 'the log mints ids that exist already; the clock of the server went back')
end

local OPTIONAL = { 'parent', 'content_type', 'deliver_by', 'execute_by', 'resend_of' }

-- The key comes last: until it stands, nothing was accepted.
local function store_message(ctx, id, item)
  local header, payload, total, inline = item.header, item.payload, #item.recipients, item.inline
  local row = {
    'HSET', hf.key.message(ctx.tag, id), 'conversation', header.conversation, 'sender', header.sender, 'key', header.key,
    'recipients', total, 'made', inline, 'bytes', #payload, 'sha256', header.sha256, 'accepted_at', ctx.at,
  }
  for _, name in ipairs(OPTIONAL) do
    if header[name] then
      row[#row + 1] = name
      row[#row + 1] = header[name]
    end
  end
  if total == 0 then
    row[#row + 1] = 'settled_at'
    row[#row + 1] = ctx.at
  end
  redis.call(unpack(row))
  redis.call('SET', hf.key.payload(ctx.tag, id), payload)
  if inline < total then hf.owe_the_rest(ctx, id, item.recipients, inline) end
  redis.call('SET', hf.key.idempotency(ctx.tag, header.key), id .. ' ' .. header.fingerprint)
end

local function take_back(ctx, id)
  redis.call('DEL', hf.key.message(ctx.tag, id), hf.key.payload(ctx.tag, id), hf.key.recipients(ctx.tag, id))
  redis.call('ZREM', hf.key.obligations(ctx.tag), id)
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

-- Everything that refuses a message, before anything is written. Answers the reply where its key is known.
local function check(ctx, item)
  local header, recipients = item.header, item.recipients
  local known = redis.call('GET', hf.key.idempotency(ctx.tag, header.key))
  if known then return replay(ctx, header, known) end
  hf.expect_type(hf.key.counts(ctx.tag), 'hash')
  local largest = hf.setting(ctx, 'max_payload_bytes')
  if #item.payload > largest then
    hf.refuse('PAYLOAD_TOO_LARGE', 'the payload has ' .. #item.payload .. ' bytes, max_payload_bytes is ' .. largest)
  end
  local most = hf.setting(ctx, 'max_recipients')
  if #recipients > most then
    hf.refuse('TOO_MANY_RECIPIENTS', #recipients .. ' recipients, max_recipients is ' .. most)
  end
  item.inline = math.min(#recipients, hf.setting(ctx, 'inline_fan_out'))
  if item.inline < #recipients then hf.expect_type(hf.key.obligations(ctx.tag), 'zset') end
  if #recipients == 0 then hf.expect_type(hf.key.settled_days(ctx.tag), 'set') end
  check_routes(ctx, recipients, item.inline)
  hf.check_lists(ctx, header, recipients, item.inline)
  local most_queued = hf.setting(ctx, 'max_queued_per_host')
  if most_queued > 0 then check_queue(ctx, recipients, most_queued) end
  return nil
end

local function note_hosts(ctx, item)
  for at = 1, item.inline do
    local host = hf.route(ctx, item.recipients[at])
    hf.wakes(ctx, host)
    ctx.queuing[host] = (ctx.queuing[host] or 0) + 1
  end
end

local function make_first(ctx, id, item)
  local header, recipients, inline = item.header, item.recipients, item.inline
  local first = recipients
  if inline < #recipients then
    first = {}
    for at = 1, inline do first[at] = recipients[at] end
  end
  local made = hf.make_deliveries(ctx, id, header, first, 1)
  return {
    'id', id, 'replayed', 0, 'recipients', #recipients, 'made', inline, 'log_id', ctx.log_id, 'deliveries', made,
  }
end

-- Sets `reply`; where the server refuses a write, as it does to a user who may not make it, `failure`: then nothing was
-- accepted, or, once the key stands, what is not made is owed.
local function store(ctx, id, item)
  local stored, failure = pcall(store_message, ctx, id, item)
  if not stored then
    item.failure = failure
    return take_back(ctx, id)
  end
  hf.count(ctx, 'recipients', #item.recipients)
  if #item.recipients == 0 then ctx.settled_messages[#ctx.settled_messages + 1] = id end
  local made, reply = pcall(make_first, ctx, id, item)
  if made then
    item.reply = reply
  else
    hf.owe_what_is_not_made(ctx, id, item)
    item.failure = reply
  end
end

-- The check's word on a message: `reply`, `failure`, or neither where it is to be accepted.
local function decide(ctx, item)
  local checked, answer = pcall(check, ctx, item)
  if checked then item.reply = answer else item.failure = answer end
end

-- Messages `{ header, payload, recipients }`, each accepted or refused for itself: `reply` is set on it, or `failure`.
-- One that comes again under its key within the call is a repeat like any other.
function hf.accept(ctx, items)
  ctx.queuing = {}
  local fresh, keys, again = {}, {}, {}
  for _, item in ipairs(items) do
    if not item.failure and keys[item.header.key] then
      again[#again + 1] = item
    elseif not item.failure then
      decide(ctx, item)
      if not item.failure and not item.reply then
        keys[item.header.key] = true
        fresh[#fresh + 1] = item
        note_hosts(ctx, item)
      end
    end
  end
  if #fresh > 0 then
    for at, id in ipairs(mint_ids(ctx, fresh)) do store(ctx, id, fresh[at]) end
    hf.finish(ctx, 'accept', 'hub')
  end
  for _, item in ipairs(again) do decide(ctx, item) end
end

-- A message of an argument list: key, fingerprint, conversation, sender, parent, content_type, sha256, deliver_by,
-- execute_by, resend_of, payload, then its recipients up to `last`.
function hf.read_message(argv, first, last)
  return {
    header = {
      key = hf.id(argv[first], 'key'),
      fingerprint = hf.id(argv[first + 1], 'fingerprint'),
      conversation = hf.id(argv[first + 2], 'conversation'),
      sender = hf.id(argv[first + 3], 'sender'),
      parent = hf.optional_id(argv[first + 4], 'parent'),
      content_type = hf.optional_id(argv[first + 5], 'content_type'),
      sha256 = hf.id(argv[first + 6], 'sha256'),
      deliver_by = hf.optional_integer(argv[first + 7], 'deliver_by'),
      execute_by = hf.optional_integer(argv[first + 8], 'execute_by'),
      resend_of = hf.optional_id(argv[first + 9], 'resend_of'),
    },
    payload = argv[first + 10],
    recipients = hf.read_recipients(argv, first + 11, last),
  }
end
