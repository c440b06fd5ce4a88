-- hf_prune: takes away what was settled longer ago than retention_ms: messages with all that is theirs, and the bodies
-- of effects. Never anything without an outcome. A slice a call; repeat while `more` is 1.
-- KEYS   1 tag
-- ARGV   limit (rows looked at, 1 to 1000)
-- REPLY  messages, deliveries, effects, more 0|1
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES none
do
  hf.register('hf_prune', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    return hf.prune(ctx, math.min(hf.integer(argv[1] or 200, 'limit', 1), 1000))
  end)
end
