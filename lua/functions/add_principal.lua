-- hf_add_principal: someone may speak over HTTP from now on. Repeating it with the same credentials answers the same.
-- KEYS   1 tag
-- ARGV   name role(producer|node|operator|viewer) host('' but for node) scopes(JSON or '') any_sender(0|1)
--        token_sha256('' for none) certificate_sha256('' for none) actor
-- REPLY  name, created_at, log_id
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT PRINCIPAL_EXISTS
-- STATES none
do
  hf.register('hf_add_principal', {}, function(keys, argv)
    local ctx = hf.open(keys)
    local new, actor = hf.read_new_principal(argv), hf.text(argv[8], 'actor')
    local created_at = hf.add_principal(ctx, new, actor)
    return { 'name', new.name, 'created_at', created_at, 'log_id', hf.last_log_id(ctx) }
  end)
end
