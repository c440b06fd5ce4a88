-- hf_sweep_parked: a slice of a host's parked lanes: those that no pause stops any more are rung for.
-- KEYS   1 tag
-- ARGV   host cursor('' to begin)
-- REPLY  found, repaired, left, cursor ('' at the end), notes [text...]
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES none
do
  hf.register('hf_sweep_parked', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    return hf.slice_reply(ctx, 'parked', hf.sweep_parked(ctx, hf.host_id(argv[1]), argv[2] or ''))
  end)
end
