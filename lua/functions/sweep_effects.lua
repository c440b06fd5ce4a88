-- hf_sweep_effects: effects that are open past the report deadline become visible.
-- KEYS   1 tag
-- ARGV   cursor('' to begin)
-- REPLY  found, repaired, left, cursor ('' at the end), notes [text...]
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES executing -> unknown list
do
  hf.register('hf_sweep_effects', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    return hf.slice_reply(ctx, 'effects', hf.sweep_effects(ctx, argv[1] or ''))
  end)
end
