-- hf_report: how attempts went. Accepted from any process of the node whose grant it was.
-- KEYS   1 tag
-- ARGV   host node incarnation, then items of: attempt|delivery grant key kind result error_code error_json ended(0|1)
--        the delivery: where the number of the attempt was never learned; key: without blanks, one for each thing reported;
--        kind: result | terminal | not_sent | outcome_unknown; result: JSON, with result alone; error_code: with every
--        other kind; error_json: JSON, or ''; ended: with outcome_unknown, the executor has ended
-- REPLY  log_id, results [[id, ok 1, epoch, state, attempt (its id), outcome, replayed? 1 | id, ok 0, code, epoch?, state?,
--        owner?, detail?]...], in order
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT NOT_JOINED
-- ITEMS  DELIVERY_NOT_FOUND NOT_BEGUN ATTEMPT_NOT_FOUND NOT_OWNER RESULT_TOO_LARGE IDEMPOTENCY_MISMATCH ALREADY_SETTLED
-- STATES executing -> done | terminal | not_sent | unknown list; after not_sent the delivery stays, is requeued or held
do
  local KINDS = { result = true, terminal = true, not_sent = true, outcome_unknown = true }

  local function read_report(item, incarnation)
    local id, grant, key, kind = item[1], hf.id(item[2], 'grant'), hf.id(item[3], 'key'), item[4]
    local result, error_code, error_json = item[5], item[6], item[7]
    if not KINDS[kind] then
      hf.refuse('INVALID_ARGUMENT', 'an outcome is result, terminal, not_sent or outcome_unknown, not "' .. tostring(kind) .. '"')
    end
    if not hf.parse_attempt(id) then hf.delivery_id(id) end
    if kind ~= 'result' then hf.id(error_code, 'error_code') end
    if string.find(key, ' ', 1, true) then hf.refuse('INVALID_ARGUMENT', 'a report key holds no blanks') end
    return {
      id = id, grant = grant, key = key, kind = kind, incarnation = incarnation,
      result = kind == 'result' and result or '',
      error_code = kind == 'result' and '' or error_code,
      error_json = kind == 'result' and '' or error_json,
      ended = hf.integer(item[8] or 0, 'ended') == 1,
    }
  end

  hf.register('hf_report', { 'allow-oom' }, function(keys, argv)
    return hf.on_items(keys, argv, 'report', 8, function(ctx, node, item, incarnation)
      local report = read_report(item, incarnation)
      ctx.max_result = hf.setting(ctx, 'max_result_bytes')
      return function() return hf.report(ctx, node, report) end
    end, { from_any = true })
  end)
end
