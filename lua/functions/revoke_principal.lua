-- hf_revoke_principal: ends a principal for good. Its row stays. Harmless to repeat.
-- KEYS   1 tag
-- ARGV   name actor reason
-- REPLY  name, revoked_at, log_id
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT PRINCIPAL_NOT_FOUND
-- STATES none
do
  hf.register('hf_revoke_principal', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local name, actor, reason = hf.id(argv[1], 'name'), hf.text(argv[2], 'actor'), hf.text(argv[3], 'reason')
    local revoked_at = hf.revoke_principal(ctx, name, actor, reason)
    return { 'name', name, 'revoked_at', revoked_at, 'log_id', hf.last_log_id(ctx) }
  end)
end
