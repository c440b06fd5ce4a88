-- hf_reconcile_messages: compares message rows with their deliveries, their keys and the obligations.
-- KEYS   1 tag
-- ARGV   repair(0|1|2: also list them anew for retention, whose list was gone) message...
-- REPLY  rows [[id, code, problem, repaired 0|1, code...]...], of those where something was found
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES none
do
  local AT_MOST = 500

  hf.register('hf_reconcile_messages', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local mode = hf.integer(argv[1], 'repair')
    local repair = mode > 0
    if #argv - 1 > AT_MOST then hf.refuse('INVALID_ARGUMENT', 'at most ' .. AT_MOST .. ' messages a call') end
    for at = 2, #argv do hf.id(argv[at], 'message') end
    local rows, repaired = {}, {}
    for at = 2, #argv do
      local found = hf.reconcile_message(ctx, argv[at], repair, mode == 2)
      if #found > 0 then
        local words = { argv[at] }
        for _, each in ipairs(found) do
          words[#words + 1] = each.code
          words[#words + 1] = each.what
          words[#words + 1] = each.repaired and 1 or 0
        end
        rows[#rows + 1] = words
        if repair then repaired[#repaired + 1] = argv[at] end
      end
    end
    hf.finish(ctx, 'reconcile_messages', 'sweep', #repaired > 0 and { 'repaired', table.concat(repaired, ' ') } or nil)
    return { 'rows', rows }
  end)
end
