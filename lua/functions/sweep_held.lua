-- hf_sweep_held: holds that stand no more, lifted, lapsed or taken away by hand, give back what they parked.
-- KEYS   1 tag
-- ARGV   cursor('' to begin)
-- REPLY  found, repaired, left, cursor ('' at the end), notes [text...]
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES held -> queued
do
  hf.register('hf_sweep_held', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    return hf.slice_reply(ctx, 'held', hf.sweep_held(ctx, argv[1] or ''))
  end)
end
