-- hf_why: why a delivery is where it is.
-- KEYS   1 tag
-- ARGV   delivery
-- REPLY  id, state, reason, detail, host, owner, epoch, attempts
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT DELIVERY_NOT_FOUND
-- STATES none
do
  hf.register('hf_why', { 'no-writes' }, function(keys, argv)
    local ctx = hf.open(keys)
    local id = hf.delivery_id(argv[1])
    local row = hf.read_delivery(ctx, id)
    if not row then hf.refuse('DELIVERY_NOT_FOUND', 'no delivery ' .. id .. ': never made, or older than the window') end
    local reason, detail = hf.why(ctx, row)
    return {
      'id', id, 'state', row.state, 'reason', reason, 'detail', detail, 'host', row.host, 'owner', row.owner or '',
      'epoch', row.epoch, 'attempts', row.attempts,
    }
  end)
end
