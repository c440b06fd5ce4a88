-- hf_sweep_nodes: consumers that own nothing and whose node is gone leave the group.
-- KEYS   1 tag
-- ARGV   host
-- REPLY  found, repaired, left, cursor ('' at the end), notes [text...]
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES none
do
  hf.register('hf_sweep_nodes', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    return hf.slice_reply(ctx, 'nodes', hf.sweep_nodes(ctx, hf.host_id(argv[1])))
  end)
end
