-- hf_busy_hosts: of some hosts, those that hold anything a sweep would look at: entries, pending or awaited deliveries,
-- parked lanes, a place in the list of the stranded, or a key of a wrong type. Changes nothing.
-- KEYS   1 tag
-- ARGV   host... (at most 1000)
-- REPLY  hosts [host...]
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES none
do
  hf.register('hf_busy_hosts', { 'no-writes' }, function(keys, argv)
    local ctx = hf.open(keys)
    for at = 1, hf.groups(argv, 1, 1) do hf.host_id(argv[at]) end
    local busy = {}
    for _, host in ipairs(argv) do
      if hf.is_busy(ctx, host) then busy[#busy + 1] = host end
    end
    return { 'hosts', busy }
  end)
end
