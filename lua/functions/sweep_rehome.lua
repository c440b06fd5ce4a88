-- hf_sweep_rehome: where rehome_on_redrive allows, sessions whose host is gone go to another that serves their scope.
-- KEYS   1 tag
-- ARGV   cursor('' to begin)
-- REPLY  found, repaired, left, cursor ('' at the end), notes [text...]
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES none: the moves are owed as obligations
do
  hf.register('hf_sweep_rehome', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    return hf.slice_reply(ctx, 'rehome', hf.sweep_rehome(ctx, argv[1] or ''))
  end)
end
