-- hf_sweep_reports: a slice of what a host was handed: open attempts of gone executors, or past the report deadline, become visible.
-- KEYS   1 tag
-- ARGV   host cursor('' to begin)
-- REPLY  found, repaired, left, cursor ('' at the end), notes [text...]
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES executing -> unknown list; delivered and idle -> failed (expired)
do
  hf.register('hf_sweep_reports', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    return hf.slice_reply(ctx, 'reports', hf.sweep_reports(ctx, hf.host_id(argv[1]), argv[2] or ''))
  end)
end
