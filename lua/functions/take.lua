-- hf_take: hf_mirror, hf_ack and, for items with a grant, hf_begin, in one call: when all of them are due. The node's copy
-- and its grant are durable before it asks.
-- KEYS   1 tag
-- ARGV   host node incarnation, then items of: delivery epoch grant|''
-- REPLY  log_id, results [[id, ok 1, epoch, state | id, ok 0, code, epoch?, state?, owner?, detail?]...] of the handoff, in
--        order; begun, the same with attempt (its number), of the begins of those with a grant that were handed off
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT NOT_JOINED SUPERSEDED HOST_RETIRED LEFT NOT_ATTESTED
-- ITEMS  as hf_ack (results): DELIVERY_NOT_FOUND STALE_EPOCH NOT_OWNER WRONG_STATE; as hf_begin (begun): ALREADY_SETTLED
--        GRANT_OPEN EXPIRED BLOCKED HELD PAUSED NOT_OWNER (its session moved)
-- STATES claimed, mirrored -> delivered; then -> executing | held | failed (blocked, expired) | queued (its session moved)
do
  hf.register('hf_take', { 'allow-oom' }, function(keys, argv)
    local begun = {}
    local reply = hf.on_items(keys, argv, 'take', 3, function(ctx, node, item)
      local delivery, epoch, grant = hf.delivery_id(item[1]), hf.integer(item[2], 'epoch'), hf.optional_id(item[3], 'grant')
      return function()
        local taken, answer = hf.take(ctx, node, delivery, epoch, grant)
        if answer then begun[#begun + 1] = answer end
        return taken
      end
    end, { grants = true })
    reply[#reply + 1] = 'begun'
    reply[#reply + 1] = begun
    return reply
  end)
end
