-- Effects: non-idempotent actions outside deliveries, each under an id that its caller minted. One row an effect;
-- it keeps id, hash and status for good.

local ROW = {
  'effect_type', 'payload_hash', 'status', 'executor', 'grant', 'started_at', 'epoch', 'time_limit_ms', 'basis',
  'unresolved', 'settled_grant', 'settled_digest', 'outcome', 'result', 'error_code', 'error_json', 'unknown_reason',
  'takeovers', 'late', 'taken_from', 'former', 'bodies_pruned_at',
}
local LATE_KEPT = 5
local FORMER_KEPT = 16
local STATUS = { result = 'done', terminal = 'terminal' }

function hf.read_effect(ctx, id)
  local values = redis.call('HMGET', hf.key.effect(ctx.tag, id), unpack(ROW))
  if not values[3] then return nil end
  local row = { id = id }
  for at, name in ipairs(ROW) do row[name] = values[at] or '' end
  row.epoch = tonumber(row.epoch) or 0
  row.started_at = tonumber(row.started_at) or 0
  row.time_limit_ms = tonumber(row.time_limit_ms) or 0
  row.takeovers = tonumber(row.takeovers) or 0
  row.late = tonumber(row.late) or 0
  return row
end

local function member_of(row) return 'effect:' .. row.id end

-- An id in the log: blanks part the ids there.
local function logged(row) return 'effect:' .. hf.escape(row.id) end

local function note(ctx, row, to)
  hf.note_move(ctx, logged(row), row.status == '' and 'none' or row.status, to)
  if row.status ~= to then
    if row.status ~= '' then hf.count(ctx, 'effects_' .. row.status, -1) end
    hf.count(ctx, 'effects_' .. to, 1)
  end
  row.status = to
end

local function write(ctx, row, ...)
  redis.call('HSET', hf.key.effect(ctx.tag, row.id), ...)
end

-- The row as it is answered: `kind` says what of it matters to the caller.
function hf.effect_reply(ctx, row, kind, ...)
  local reply = {
    'kind', kind, 'id', row.id, 'status', row.status, 'epoch', row.epoch, 'started_at', row.started_at,
    'executor', row.executor, 'age_ms', math.max(0, ctx.now - row.started_at), 'log_id', hf.last_log_id(ctx),
    'result', row.result, 'error_code', row.error_code, 'error_json', row.error_json,
    'unknown_reason', row.unknown_reason, 'takeovers', row.takeovers, 'bodies_pruned_at', row.bodies_pruned_at,
  }
  for _, word in ipairs({ ... }) do reply[#reply + 1] = word end
  return reply
end

local function refused(ctx, row, code, detail)
  return hf.effect_reply(ctx, row, 'refused', 'code', code, 'detail', detail)
end

-- How a settled or open row is told to one who asked for it.
local function record_of(ctx, row)
  if row.status == 'done' then return hf.effect_reply(ctx, row, 'result') end
  if row.status == 'terminal' then return hf.effect_reply(ctx, row, 'terminal') end
  return hf.effect_reply(ctx, row, 'outcome_unknown')
end

local function check_hash(row, effect_type, payload_hash)
  if row.payload_hash ~= payload_hash then
    hf.refuse('PAYLOAD_MISMATCH', 'effect ' .. row.id .. ' has payload hash ' .. row.payload_hash .. ', not ' .. payload_hash)
  end
  if effect_type and row.effect_type ~= effect_type then
    hf.refuse('PAYLOAD_MISMATCH', 'effect ' .. row.id .. ' is of type ' .. row.effect_type .. ', not ' .. effect_type)
  end
end

local function list_unknown(ctx, row, reason)
  redis.call('ZADD', hf.key.unknown(ctx.tag), 'NX', ctx.now, member_of(row))
  if row.unknown_reason == reason then return end
  row.unknown_reason = reason
  write(ctx, row, 'unknown_at', ctx.now, 'unknown_reason', reason)
end

hf.unknown_member = member_of

-- An effect that is open past the report deadline becomes visible, once. True when it was not before.
function hf.overdue_effect(ctx, row)
  if redis.call('ZSCORE', hf.key.unknown(ctx.tag), member_of(row)) then return false end
  list_unknown(ctx, row, 'overdue')
  note(ctx, row, 'executing')
  return true
end

local function unlist_unknown(ctx, row)
  redis.call('ZREM', hf.key.unknown(ctx.tag), member_of(row))
  row.unknown_reason = ''
  redis.call('HDEL', hf.key.effect(ctx.tag, row.id), 'unknown_at', 'unknown_reason', 'unknown_json')
end

local function has_word(list, word)
  return string.find(' ' .. list .. ' ', ' ' .. word .. ' ', 1, true) ~= nil
end

-- Opens the row for one grant: the only permission to execute.
local function open(ctx, row, call)
  row.epoch = hf.next_epoch(ctx, row.epoch)
  row.executor, row.grant, row.started_at = call.executor, call.grant, ctx.now
  row.time_limit_ms, row.basis = call.time_limit_ms or 0, call.basis or ''
  note(ctx, row, 'executing')
  write(ctx, row, 'status', 'executing', 'executor', row.executor, 'grant', row.grant, 'started_at', ctx.now, 'epoch',
    row.epoch, 'time_limit_ms', row.time_limit_ms, 'basis', row.basis)
  -- Nothing of an earlier try that did not execute passes for this one's outcome.
  row.error_code, row.error_json = '', ''
  redis.call('HDEL', hf.key.effect(ctx.tag, row.id), 'outcome', 'settled_at', 'error_code', 'error_json')
  redis.call('ZADD', hf.key.executing(ctx.tag), ctx.now, row.id)
end

-- Claim: insert or lose. Exactly one executor wins; whoever loses is told the record.
function hf.claim_effect(ctx, call)
  local row = hf.read_effect(ctx, call.id)
  if not row then
    row = { id = call.id, effect_type = call.effect_type, payload_hash = call.payload_hash, epoch = 0, takeovers = 0, late = 0,
      status = '', result = '', error_code = '', error_json = '', unknown_reason = '', unresolved = '', former = '',
      bodies_pruned_at = '' }
    redis.call('ZADD', hf.key.effects(ctx.tag), ctx.now, call.id)
    write(ctx, row, 'effect_type', call.effect_type, 'payload_hash', call.payload_hash, 'claimed_at', ctx.now)
    open(ctx, row, call)
    hf.finish(ctx, 'claim_effect', call.executor)
    return hf.effect_reply(ctx, row, 'claimed')
  end
  check_hash(row, call.effect_type, call.payload_hash)
  if row.status == 'free' then
    -- A grant is for one try: a copy of its claim that was under way for long opens none.
    if has_word(row.former, call.grant) then
      hf.refuse('ALREADY_SETTLED', 'the try of effect ' .. call.id .. ' under this grant was settled as not_sent; another needs a grant of its own')
    end
    open(ctx, row, call)
    hf.finish(ctx, 'claim_effect', call.executor)
    return hf.effect_reply(ctx, row, 'claimed')
  end
  if row.status == 'executing' and row.grant == call.grant and row.executor == call.executor then
    return hf.effect_reply(ctx, row, 'claimed', 'again', 1)
  end
  if row.status == 'executing' and row.unknown_reason == ''
    and ctx.now - row.started_at >= hf.setting(ctx, 'report_deadline_ms') then
    list_unknown(ctx, row, 'overdue')
    note(ctx, row, 'executing')
    hf.finish(ctx, 'claim_effect', call.executor)
  end
  return record_of(ctx, row)
end

-- Take-over: compare-and-set on epoch and started_at, on a stated basis, once the row is old enough.
function hf.take_over_effect(ctx, call)
  local row = hf.read_effect(ctx, call.id)
  if not row then hf.refuse('EFFECT_NOT_FOUND', 'no effect ' .. call.id) end
  check_hash(row, nil, call.payload_hash)
  if call.basis ~= 'probe' and call.basis ~= 'idempotent' then
    return refused(ctx, row, 'NOT_RECOVERABLE', 'a basis is probe or idempotent; without one the outcome stays unknown')
  end
  if row.status == 'executing' and row.grant == call.grant and row.executor == call.executor then
    return hf.effect_reply(ctx, row, 'claimed', 'again', 1)
  end
  if row.status ~= 'executing' or row.epoch ~= call.epoch or row.started_at ~= call.started_at then
    return refused(ctx, row, 'STALE_EPOCH', 'the row is ' .. row.status .. ' at epoch ' .. row.epoch .. ', not executing at epoch ' .. call.epoch)
  end
  local age, needed = ctx.now - row.started_at, math.max(hf.setting(ctx, 'recovery_age_ms'), row.time_limit_ms)
  if age < needed then
    return refused(ctx, row, 'TOO_YOUNG', 'claimed ' .. age .. ' ms ago, taken over from ' .. needed .. ' ms on')
  end
  local unresolved = row.unresolved == '' and row.grant or row.unresolved .. ' ' .. row.grant
  row.unresolved, row.takeovers = unresolved, row.takeovers + 1
  unlist_unknown(ctx, row)
  local from = row.executor .. '#' .. row.epoch
  open(ctx, row, call)
  write(ctx, row, 'unresolved', unresolved, 'takeovers', row.takeovers, 'taken_over_at', ctx.now, 'taken_from', from)
  hf.count(ctx, 'effect_takeovers_' .. call.basis, 1)
  hf.finish(ctx, 'take_over_effect', call.executor, { 'basis', call.basis })
  return hf.effect_reply(ctx, row, 'claimed')
end

local function digest_of(report)
  return redis.sha1hex(table.concat({ report.kind, report.result, report.error_code, report.error_json }, '\0'))
end

-- What comes too late is counted and kept as evidence; it overwrites nothing.
local function keep_late(ctx, row, report)
  row.late = row.late + 1
  write(ctx, row, 'late', row.late)
  if row.late <= LATE_KEPT then
    write(ctx, row, 'late_' .. row.late, report.kind .. ' ' .. report.error_code .. ' ' .. report.grant .. ' ' .. ctx.now,
      'late_' .. row.late .. '_body', report.result ~= '' and report.result or report.error_json)
  end
  hf.count(ctx, 'late_reports', 1)
  hf.finish(ctx, 'settle_effect', report.executor, { 'late', logged(row) })
end

local function drop_word(list, word)
  local kept = {}
  for each in string.gmatch(list, '%S+') do
    if each ~= word then kept[#kept + 1] = each end
  end
  return table.concat(kept, ' ')
end

-- The grants that held a row before it was freed, the latest of them: what they still say is evidence.
local function former_grants(row)
  local words = {}
  for each in string.gmatch(row.former .. ' ' .. row.unresolved .. ' ' .. row.grant, '%S+') do
    words[#words + 1] = each
  end
  return table.concat(words, ' ', math.max(1, #words - FORMER_KEPT + 1))
end

-- Closes the row: `to` is done, terminal or free.
local function close(ctx, row, to, report, ...)
  unlist_unknown(ctx, row)
  redis.call('ZREM', hf.key.executing(ctx.tag), row.id)
  note(ctx, row, to)
  row.result, row.error_code, row.error_json = report.result, report.error_code, report.error_json
  write(ctx, row, 'status', to, 'outcome', report.kind, 'settled_at', ctx.now, 'settled_grant', report.grant,
    'settled_digest', digest_of(report), 'error_code', report.error_code, ...)
  if report.result ~= '' then write(ctx, row, 'result', report.result) end
  if report.error_json ~= '' then write(ctx, row, 'error_json', report.error_json) end
  if to == 'free' then
    write(ctx, row, 'former', former_grants(row))
  else
    local day = math.floor(ctx.now / 86400000)
    redis.call('RPUSH', hf.key.settled_effects(ctx.tag, day), row.id)
    redis.call('SADD', hf.key.settled_effect_days(ctx.tag), day)
  end
end

local function stay_unknown(ctx, row, report, reason)
  local told = redis.call('HGET', hf.key.effect(ctx.tag, row.id), 'unknown_json') or ''
  if row.unknown_reason == reason and told == report.error_json then
    return hf.effect_reply(ctx, row, 'settled', 'outcome', 'outcome_unknown', 'again', 1)
  end
  list_unknown(ctx, row, reason)
  if report.error_json ~= '' then
    write(ctx, row, 'unknown_json', report.error_json)
  else
    redis.call('HDEL', hf.key.effect(ctx.tag, row.id), 'unknown_json')
  end
  note(ctx, row, 'executing')
  hf.finish(ctx, 'settle_effect', report.executor, { 'unknown', reason })
  return hf.effect_reply(ctx, row, 'settled', 'outcome', 'outcome_unknown')
end

local function apply(ctx, row, report)
  if report.kind == 'outcome_unknown' then return stay_unknown(ctx, row, report, report.error_code) end
  if report.kind == 'not_sent' then
    -- Whoever took over after asking a probe speaks for the earlier grants too; nobody else does.
    if row.unresolved ~= '' and row.basis ~= 'probe' then
      return stay_unknown(ctx, row, report, 'an earlier grant is unresolved')
    end
    close(ctx, row, 'free', report, 'unresolved', '')
  else
    close(ctx, row, STATUS[report.kind], report)
  end
  hf.finish(ctx, 'settle_effect', report.executor)
  return hf.effect_reply(ctx, row, 'settled', 'outcome', report.kind)
end

-- The grant is not, or no longer, the row's.
local function settle_by_other(ctx, row, report)
  local unresolved = has_word(row.unresolved, report.grant)
  local superseded = unresolved or has_word(row.former, report.grant)
  local again = row.settled_grant == report.grant and row.settled_digest == digest_of(report)
  if superseded and not again then
    if unresolved and report.kind == 'not_sent' then
      row.unresolved = drop_word(row.unresolved, report.grant)
      write(ctx, row, 'unresolved', row.unresolved)
    end
    keep_late(ctx, row, report)
  end
  local code = (superseded or report.epoch < row.epoch) and 'STALE_EPOCH' or 'NOT_OWNER'
  return refused(ctx, row, code, 'the row is ' .. row.status .. ' at epoch ' .. row.epoch .. ' under another grant')
end

-- Settle: conditional on executing and the grant. The four outcomes never collapse.
function hf.settle_effect(ctx, report)
  local row = hf.read_effect(ctx, report.id)
  if not row then hf.refuse('EFFECT_NOT_FOUND', 'no effect ' .. report.id) end
  local largest = hf.setting(ctx, 'max_result_bytes')
  if #report.result > largest or #report.error_json > largest then
    hf.refuse('RESULT_TOO_LARGE', 'max_result_bytes is ' .. largest)
  end
  if row.grant ~= report.grant then return settle_by_other(ctx, row, report) end
  if row.executor ~= report.executor then
    return refused(ctx, row, 'NOT_OWNER', 'the grant belongs to executor ' .. row.executor)
  end
  if row.epoch ~= report.epoch then
    return refused(ctx, row, 'STALE_EPOCH', 'the row is at epoch ' .. row.epoch .. ', not ' .. report.epoch)
  end
  if row.status == 'executing' then return apply(ctx, row, report) end
  if row.settled_digest == digest_of(report) then
    return hf.effect_reply(ctx, row, 'settled', 'outcome', report.kind, 'again', 1)
  end
  keep_late(ctx, row, report)
  return refused(ctx, row, 'ALREADY_SETTLED', 'the row is ' .. row.status .. ' with outcome ' .. row.outcome)
end

-- Resolve: an operator's word, with evidence, where nobody else can know.
function hf.resolve_effect(ctx, call)
  local row = hf.read_effect(ctx, call.id)
  if not row then hf.refuse('EFFECT_NOT_FOUND', 'no effect ' .. call.id) end
  if row.status ~= 'executing' then
    hf.refuse('ALREADY_SETTLED', 'effect ' .. row.id .. ' is ' .. row.status .. '; only an unknown outcome is resolved')
  end
  if row.unknown_reason == '' and not call.force then
    hf.refuse('EXECUTING', 'effect ' .. row.id .. ' runs under executor ' .. row.executor .. '; wait for it, or force')
  end
  local report = { kind = call.as, result = call.result, error_code = call.as == 'result' and '' or 'resolved', error_json = '', grant = row.grant }
  close(ctx, row, call.as == 'not_sent' and 'free' or STATUS[call.as], report, 'resolved_by', call.actor, 'resolved_at',
    ctx.now, 'evidence', call.evidence, 'unresolved', '')
  hf.finish(ctx, 'resolve_effect', call.actor, { 'evidence', call.evidence })
  return hf.effect_reply(ctx, row, 'settled', 'outcome', call.as)
end
