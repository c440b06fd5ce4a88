-- hf_block: what is covered fails at its next claim or begin.
-- KEYS   1 tag
-- ARGV   scope(hub|host:<h>|conversation:<c>|session:<s>) reason actor [until_ms]
-- REPLY  fence, replaced (the former reason, or ''), log_id
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT RECORD_DAMAGED
-- STATES none here; claims and begins fail what is covered
do
  hf.register('hf_block', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local scope, reason, actor = argv[1], hf.text(argv[2], 'reason'), hf.text(argv[3], 'actor')
    local until_ms = hf.optional_integer(argv[4], 'until_ms')
    return hf.set_fence(ctx, 'block', scope, reason, actor, until_ms)
  end)
end
