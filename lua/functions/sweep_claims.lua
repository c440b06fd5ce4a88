-- hf_sweep_claims: a slice of a host's pending list against the rows: ghosts are cleared, stolen reads go back, leftovers leave.
-- KEYS   1 tag
-- ARGV   host cursor('' to begin)
-- REPLY  found, repaired, left, cursor ('' at the end), notes [text...]
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES none: indexes are made to agree with the rows
do
  hf.register('hf_sweep_claims', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    return hf.slice_reply(ctx, 'claims', hf.sweep_claims(ctx, hf.host_id(argv[1]), argv[2] or ''))
  end)
end
