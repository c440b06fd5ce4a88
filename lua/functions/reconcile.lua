-- hf_reconcile: compares delivery rows with every index that should name them, and puts the indexes right. In order.
-- KEYS   1 tag
-- ARGV   repair(0|1) lanes(1: also whether the lane of a parked delivery lists it, which is searched) delivery...
-- REPLY  rows [[id, state ('' without a row), settled (failed|done|terminal|''), parked 0|1, host, entry, code, problem, repaired 0|1, code...]...]
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES none: rows stay, indexes are made to agree with them
do
  local AT_MOST = 500

  local function described(id, row, found)
    local words = { id, '', '', 0, '', '' }
    if row then
      words[2], words[5], words[6] = row.state, row.host, row.entry or ''
      words[3] = row.state == 'failed' and 'failed' or hf.is_finished(row) and row.attempt_status or ''
      words[4] = row.state == 'queued' and row.parked_by and 1 or 0
    end
    for _, each in ipairs(found) do
      words[#words + 1] = each.code
      words[#words + 1] = each.what
      words[#words + 1] = each.repaired and 1 or 0
    end
    return words
  end

  hf.register('hf_reconcile', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local repair, lanes = hf.integer(argv[1], 'repair') == 1, hf.integer(argv[2], 'lanes') == 1
    if #argv - 2 > AT_MOST then hf.refuse('INVALID_ARGUMENT', 'at most ' .. AT_MOST .. ' deliveries a call') end
    for at = 3, #argv do hf.delivery_id(argv[at]) end
    local rows, repaired = {}, {}
    for at = 3, #argv do
      local row, found = hf.reconcile(ctx, argv[at], repair, lanes)
      rows[#rows + 1] = described(argv[at], row, found)
      if repair and #found > 0 then repaired[#repaired + 1] = argv[at] end
    end
    hf.finish(ctx, 'reconcile', 'sweep', #repaired > 0 and { 'repaired', table.concat(repaired, ' ') } or nil)
    return { 'rows', rows }
  end)
end
