-- hf_recount: sets the counts to what a walk over all rows found, if nothing has moved since it began.
-- KEYS   1 tag
-- ARGV   log_id (the last one when the walk began), then pairs of: count number
-- REPLY  done 0|1, log_id
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES none
do
  local COUNTS = {
    queued = true, claimed = true, mirrored = true, delivered = true, held = true, failed = true, unknown = true,
    finished = true, recipients = true, done = true, terminal = true, effects_executing = true, effects_done = true,
    effects_terminal = true, effects_free = true,
  }

  hf.register('hf_recount', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local counted = {}
    for at = 2, #argv, 2 do
      if not COUNTS[argv[at]] then hf.refuse('INVALID_ARGUMENT', 'no count "' .. argv[at] .. '" is set from rows') end
      counted[argv[at]] = hf.integer(argv[at + 1], argv[at])
    end
    local done = hf.recount(ctx, hf.id(argv[1], 'log_id'), counted)
    return { 'done', done and 1 or 0, 'log_id', hf.last_log_id(ctx) }
  end)
end
