-- hf_configure: changes tunables for every process at once: all of them, or none.
-- KEYS   1 tag
-- ARGV   actor, then pairs of: name value
-- REPLY  log_id
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES none
do
  hf.register('hf_configure', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local actor = hf.text(argv[1], 'actor')
    hf.groups(argv, 2, 2)
    local changes = {}
    for at = 2, #argv, 2 do
      hf.check_setting(argv[at], argv[at + 1])
      changes[#changes + 1] = argv[at] .. '=' .. argv[at + 1]
    end
    redis.call('HSET', hf.key.config(ctx.tag), unpack(argv, 2))
    hf.finish(ctx, 'configure', actor, { 'settings', table.concat(changes, ' ') })
    return { 'log_id', ctx.log_id }
  end)
end
