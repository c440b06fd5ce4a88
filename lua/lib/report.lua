-- Report: how an attempt went. The four outcomes never collapse, and a settled one never changes.

local LATE_REPORTS_KEPT = 5
local KEYS_KEPT = 20
local NUMBERS_KNOWN = 20 -- attempt numbers whose field names are kept

-- What decides about an open attempt, and what else there is of a settled one.
local OPEN = {
  'status', 'grant', 'node', 'incarnation', 'unknown_keys', 'late_keys', 'unknown_at', 'unknown_reports', 'session_epoch',
  'replayed_at',
}
local SETTLED = { 'report_key', 'outcome', 'result', 'error_code', 'error_json', 'late' }

-- The names of the fields of an attempt, `attempt_<n>_<name>`, made once.
local made = {}

local function field(number, name)
  local of_number = made[number]
  if not of_number then
    of_number = {}
    if number <= NUMBERS_KNOWN then made[number] = of_number end
  end
  local known = of_number[name]
  if not known then
    known = 'attempt_' .. number .. '_' .. name
    of_number[name] = known
  end
  return known
end

local function fields_of(number, list)
  local fields = {}
  for at, name in ipairs(list) do fields[at] = field(number, name) end
  return fields
end

-- What a report reads at once of a row and of the attempt, made once a number.
local reading = {}

local function fields_to_read(number)
  if not reading[number] then
    local fields = { 'state', 'epoch', 'host', 'attempts', 'session', 'takeovers' }
    for _, name in ipairs(fields_of(number, OPEN)) do fields[#fields + 1] = name end
    reading[number] = fields
  end
  return reading[number]
end

local function add_fields(attempt, names, values)
  for at, name in ipairs(names) do attempt[name] = values[at] or '' end
end

local function read_fields(ctx, row, number, names)
  return redis.call('HMGET', hf.key.delivery(ctx.tag, row.id), unpack(fields_of(number, names)))
end

-- `values` of OPEN, where they were read with the row.
local function read_attempt(ctx, row, number, values)
  local attempt = { number = number }
  add_fields(attempt, OPEN, values or read_fields(ctx, row, number, OPEN))
  if attempt.status ~= 'executing' then add_fields(attempt, SETTLED, read_fields(ctx, row, number, SETTLED)) end
  return attempt
end

local function attempt_reply(row, number, ...)
  return hf.item_ok(row, 'attempt', row.id .. '/' .. number, ...)
end

local function refused(id, code, row, detail)
  return hf.item_refused(id, code, row, detail)
end

-- Field-value pairs of one attempt: its number goes into the field names.
local function numbered(number, ...)
  local words = { ... }
  for at = 1, #words, 2 do words[at] = field(number, words[at]) end
  return words
end

-- What a report says, short enough to be kept beside its key.
local function digest_of(report)
  return redis.sha1hex(table.concat({ report.kind, report.result, report.error_code, report.error_json }, '\0'))
end

-- Key lists hold the latest ` key=digest`, blank-separated, so that a repeat is told from new content.
local function digest_in(list, key)
  if list == '' then return nil end
  for word in string.gmatch(list, '%S+') do
    if #word == #key + 41 and string.sub(word, 1, #key) == key then return string.sub(word, -40) end
  end
  return nil
end

local function with_key(list, report)
  local words = { report.key .. '=' .. digest_of(report) }
  for word in string.gmatch(list, '%S+') do
    if #words < KEYS_KEPT then words[#words + 1] = word end
  end
  return table.concat(words, ' ')
end

-- A report that comes too late is counted and kept as evidence; it overwrites nothing.
local function keep_late(ctx, row, attempt, report)
  local late = (tonumber(attempt.late) or 0) + 1
  local fields = numbered(attempt.number, 'late', late, 'late_keys', with_key(attempt.late_keys, report))
  if late <= LATE_REPORTS_KEPT then
    local evidence = numbered(attempt.number, 'late_' .. late, report.kind .. ' ' .. report.error_code .. ' ' .. ctx.now,
      'late_' .. late .. '_body', report.result ~= '' and report.result or report.error_json)
    for _, word in ipairs(evidence) do fields[#fields + 1] = word end
  end
  redis.call('HSET', hf.key.delivery(ctx.tag, row.id), unpack(fields))
  hf.count(ctx, 'late_reports', 1)
  return refused(report.id, 'ALREADY_SETTLED', row, attempt.outcome)
end

-- The answer to a report key seen before: the recorded one, or a mismatch. Nil for a new key.
local function known_key(row, attempt, report)
  local same
  local earlier = digest_in(attempt.unknown_keys, report.key)
  local late = digest_in(attempt.late_keys, report.key)
  if attempt.report_key == report.key then
    same = attempt.outcome == report.kind and attempt.result == report.result
      and attempt.error_code == report.error_code and attempt.error_json == report.error_json
  elseif earlier or late then
    same = (earlier or late) == digest_of(report)
  else
    return nil
  end
  if not same then return refused(report.id, 'IDEMPOTENCY_MISMATCH', row, attempt.outcome) end
  if late and not earlier then return refused(report.id, 'ALREADY_SETTLED', row, attempt.outcome) end
  -- What was taken for an unknown outcome is answered as one, whatever it said.
  local recorded = attempt.report_key == report.key and report.kind or 'outcome_unknown'
  return attempt_reply(row, attempt.number, 'outcome', recorded, 'replayed', 1)
end

-- Stays executing, and visible. The list keeps since when; the reason is the latest word of those who know, and
-- every word is counted. With `ended` the executor has come to its end: nothing of it runs any more.
local function report_unknown(ctx, row, attempt, report)
  hf.list_unknown(ctx, row, attempt.number, report.error_code)
  redis.call('HSET', hf.key.delivery(ctx.tag, row.id), unpack(numbered(attempt.number,
    'unknown_keys', with_key(attempt.unknown_keys, report), 'unknown_reason', report.error_code,
    'unknown_json', report.error_json, 'unknown_reports', (tonumber(attempt.unknown_reports) or 0) + 1,
    'unknown_reported_at', ctx.now)))
  -- Of a later process that began it again an earlier one cannot tell.
  if report.ended and report.incarnation >= (tonumber(attempt.incarnation) or 0) then
    redis.call('HSET', hf.key.delivery(ctx.tag, row.id), 'attempt_' .. attempt.number .. '_ended_at', ctx.now)
  end
  hf.note_move(ctx, row.id .. '/' .. attempt.number, 'executing', 'unknown')
  return attempt_reply(row, attempt.number, 'outcome', 'outcome_unknown')
end

local STATUS = { result = 'done', terminal = 'terminal', not_sent = 'not_sent' }

-- Closes the attempt in one write, with whatever else the row gets by it.
local function close(ctx, row, attempt, report, ...)
  local status = STATUS[report.kind]
  local fields = numbered(attempt.number, 'status', status, 'outcome', report.kind, 'report_key', report.key,
    'settled_at', ctx.at)
  if report.kind == 'result' then
    fields[#fields + 1] = field(attempt.number, 'result')
    fields[#fields + 1] = report.result
  else
    for _, name in ipairs({ 'error_code', 'error_json' }) do
      if report[name] ~= '' then
        fields[#fields + 1] = field(attempt.number, name)
        fields[#fields + 1] = report[name]
      end
    end
  end
  for _, word in ipairs({ 'attempt_status', status, ... }) do fields[#fields + 1] = word end
  if row.takeovers > 0 then
    fields[#fields + 1] = 'takeovers'
    fields[#fields + 1] = 0
  end
  redis.call('HSET', hf.key.delivery(ctx.tag, row.id), unpack(fields))
  if row.session then redis.call('SREM', hf.key.session_attempts(ctx.tag, row.session), row.id) end
  if attempt.unknown_at ~= '' then redis.call('ZREM', hf.key.unknown(ctx.tag), row.id .. '/' .. attempt.number) end
  hf.note_move(ctx, row.id .. '/' .. attempt.number, 'executing', status)
  row.attempt_status = status
end

-- After a not_sent: the live owner tries again itself; anyone else's proof sends it back to the queue.
local function go_on(ctx, row, node, report)
  local owner_lives = row.host == node.host and row.owner == node.id and row.incarnation == report.incarnation
    and node.incarnation == report.incarnation and node.state ~= 'left'
  if row.attempts - row.redrive_from >= hf.setting(ctx, 'max_redrive') then
    hf.hold_delivery(ctx, row, 'redrive_exhausted', node.name)
  elseif not owner_lives or hf.is_retired(ctx, row.host) or hf.home_of(ctx, row) ~= row.host then
    hf.requeue_delivery(ctx, row, node.name, 'not_sent')
  end
end

local function settle(ctx, row, attempt, node, report)
  if report.kind == 'not_sent' then
    close(ctx, row, attempt, report)
    go_on(ctx, row, node, report)
  else
    close(ctx, row, attempt, report, 'settled_at', ctx.at)
    hf.stop_awaiting(ctx, row.host, row.id)
    hf.count(ctx, STATUS[report.kind], 1)
    hf.count(ctx, 'finished', 1)
    hf.settle_on_message(ctx, row)
    if report.kind == 'terminal' and report.error_code == 'target_session_missing' then
      hf.session_reported_missing(ctx, row, row.id .. '/' .. attempt.number, tonumber(attempt.session_epoch))
    end
  end
  return attempt_reply(row, attempt.number, 'outcome', report.kind)
end

-- The record lost the begin that this report speaks of: what it says is kept for whoever resolves the delivery, the first
-- time.
local function keep_evidence(ctx, node, row, report)
  local key = hf.key.delivery(ctx.tag, row.id)
  if row.state ~= 'unknown' or redis.call('HGET', key, 'unknown_reason') ~= 'history_lost' then return end
  if redis.call('HSETNX', key, 'reported_by', node.name) == 0 then return end
  local body = report.result ~= '' and report.result or report.error_json
  redis.call('HSET', key, 'reported_at', ctx.now, 'reported_grant', report.grant, 'reported_outcome', report.kind,
    'reported_code', report.error_code, 'reported_body', #body > ctx.max_result and '' or body)
end

-- A report names its attempt, or the delivery where its node never learned the number.
local function find_attempt(ctx, node, report)
  local delivery, number = hf.parse_attempt(report.id)
  delivery = delivery or report.id
  local known = number and number >= 1 and number <= NUMBERS_KNOWN and fields_to_read(number)
  local row = hf.read_delivery(ctx, delivery, known or nil)
  if not row then return nil, refused(report.id, 'DELIVERY_NOT_FOUND') end
  number = number or hf.attempt_of_grant(ctx, row, report.grant)
  if not number or number > row.attempts then keep_evidence(ctx, node, row, report) end
  if not number then return nil, refused(report.id, 'NOT_BEGUN', row) end
  if number < 1 or number > row.attempts then return nil, refused(report.id, 'ATTEMPT_NOT_FOUND', row) end
  local values = known and {}
  if known then
    for at, name in ipairs(OPEN) do values[at] = row[field(number, name)] end
  end
  return row, nil, read_attempt(ctx, row, number, values)
end

-- That a replay sent nothing says nothing of the run before it; a probe speaks of both.
local function proves_too_little(attempt, report)
  return report.kind == 'not_sent' and attempt.replayed_at ~= '' and report.error_code ~= 'probe_not_executed'
end

function hf.report(ctx, node, report)
  local row, refusal, attempt = find_attempt(ctx, node, report)
  if not row then return refusal end
  if #report.result > ctx.max_result or #report.error_json > ctx.max_result then
    return refused(report.id, 'RESULT_TOO_LARGE', row, 'max_result_bytes is ' .. ctx.max_result)
  end
  if attempt.grant ~= report.grant or attempt.node ~= node.name then return refused(report.id, 'NOT_OWNER', row) end
  local known = known_key(row, attempt, report)
  if known then return known end
  if attempt.status ~= 'executing' then return keep_late(ctx, row, attempt, report) end
  if report.kind == 'outcome_unknown' or proves_too_little(attempt, report) then
    return report_unknown(ctx, row, attempt, report)
  end
  return settle(ctx, row, attempt, node, report)
end

-- Resolve: an operator's word, with evidence, on an attempt whose outcome nobody else can know. Irreversible.
function hf.resolve_attempt(ctx, call)
  local delivery, number = hf.parse_attempt(call.id)
  if not delivery then hf.refuse('INVALID_ARGUMENT', 'an attempt id is <delivery>/<n>, not "' .. tostring(call.id) .. '"') end
  local row = hf.read_delivery(ctx, delivery)
  if not row then hf.refuse('DELIVERY_NOT_FOUND', 'no delivery ' .. delivery .. ': never made, or older than the window') end
  if number < 1 or number > row.attempts then hf.refuse('ATTEMPT_NOT_FOUND', 'no attempt ' .. call.id) end
  local attempt = read_attempt(ctx, row, number)
  if attempt.status ~= 'executing' then
    hf.refuse('ALREADY_SETTLED', 'attempt ' .. call.id .. ' has outcome ' .. attempt.outcome)
  end
  if not call.force and hf.executor_lives(ctx, row) then
    hf.refuse('EXECUTING', 'attempt ' .. call.id .. ' runs on node ' .. attempt.node .. ', which lives')
  end
  local report = {
    id = call.id, kind = call.as, key = '', grant = attempt.grant, incarnation = -1, result = call.result,
    error_code = call.as == 'result' and '' or 'resolved', error_json = '',
  }
  redis.call('HSET', hf.key.delivery(ctx.tag, row.id), unpack(numbered(number, 'resolved_by', call.actor, 'resolved_at',
    ctx.now, 'evidence', call.evidence)))
  settle(ctx, row, attempt, { host = '', id = '', name = call.actor, incarnation = -1 }, report)
  hf.count(ctx, 'resolutions', 1)
  hf.finish(ctx, 'resolve_attempt', call.actor, { 'evidence', call.evidence })
  return { 'id', call.id, 'state', row.state, 'epoch', row.epoch, 'outcome', call.as, 'log_id', ctx.log_id }
end

-- A delivery whose copy was in doubt: queued again, or failed, on an operator's word.
function hf.resolve_delivery(ctx, call)
  local row = hf.open_delivery(ctx, call.id)
  if row.state ~= 'unknown' then hf.refuse('NOT_UNKNOWN', call.id .. ' is ' .. row.state .. '; only an unknown delivery is resolved') end
  if call.as == 'queued' then
    hf.requeue_delivery(ctx, row, call.actor, 'resolved', 'resolved_by', call.actor, 'resolved_at', ctx.now, 'evidence', call.evidence)
  else
    hf.fail_delivery(ctx, row, 'resolved', call.actor, call.evidence)
    redis.call('HSET', hf.key.delivery(ctx.tag, row.id), 'resolved_by', call.actor, 'resolved_at', ctx.now, 'evidence', call.evidence)
  end
  hf.finish(ctx, 'resolve_delivery', call.actor, { 'evidence', call.evidence })
  return hf.operator_reply(ctx, row)
end
