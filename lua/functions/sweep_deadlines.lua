-- hf_sweep_deadlines: what nobody claimed by deliver_by, or began by execute_by, fails, also where no node lives.
-- KEYS   1 tag
-- ARGV   none
-- REPLY  found, repaired, left, cursor ('' at the end), notes [text...]
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES queued, delivered and idle -> failed (expired)
do
  hf.register('hf_sweep_deadlines', { 'allow-oom' }, function(keys)
    local ctx = hf.open(keys)
    return hf.slice_reply(ctx, 'deadlines', hf.sweep_deadlines(ctx))
  end)
end
