-- hf_note_sweep: how a run of a sweep went, kept where `sweep ls` and readiness look.
-- KEYS   1 tag
-- ARGV   name duration_ms found repaired left cursor ('' when it came to its end) error ('' when it succeeded) by notes(JSON)
-- REPLY  runs
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES none
do
  hf.register('hf_note_sweep', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local key = hf.key.sweep(ctx.tag, hf.word(argv[1], 'name'))
    local found, repaired, left = hf.integer(argv[3], 'found'), hf.integer(argv[4], 'repaired'), hf.integer(argv[5], 'left')
    local failed = argv[7] ~= ''
    redis.call('HSET', key, 'last_run_at', ctx.now, 'duration_ms', hf.integer(argv[2], 'duration_ms'), 'found', found,
      'repaired', repaired, 'left', left, 'cursor', argv[6], 'error', argv[7], 'by', argv[8], 'notes', argv[9])
    if not failed then redis.call('HSET', key, 'last_succeeded_at', ctx.now) end
    if argv[6] == '' and not failed then redis.call('HSET', key, 'last_complete_at', ctx.now) end
    redis.call('HINCRBY', key, 'found_total', found)
    redis.call('HINCRBY', key, 'repaired_total', repaired)
    if failed then redis.call('HINCRBY', key, 'failures', 1) end
    return { 'runs', redis.call('HINCRBY', key, 'runs', 1) }
  end)
end
