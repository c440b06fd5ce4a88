-- hf_sweep_stale: whether a host has work and no live node (it is listed as stranded), or a gone node's deliveries that peers can take.
-- KEYS   1 tag
-- ARGV   host
-- REPLY  found, repaired, left, cursor ('' at the end), notes [text...]
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES none
do
  hf.register('hf_sweep_stale', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    return hf.slice_reply(ctx, 'stale', hf.sweep_stale(ctx, hf.host_id(argv[1])))
  end)
end
