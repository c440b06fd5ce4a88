-- hf_begin: opens an attempt under a grant: the only permission to execute. Same grant, same process: same answer.
-- KEYS   1 tag
-- ARGV   host node incarnation, then items of: delivery epoch grant idempotent(0|1: begin again, under the same grant,
--        what an earlier process of this node began and did not settle)
-- REPLY  log_id, results [[id, ok 1, epoch, state, attempt (its number), replayed? 1 | id, ok 0, code, epoch?, state?,
--        owner?, detail?]...], in order
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT NOT_JOINED SUPERSEDED HOST_RETIRED LEFT NOT_ATTESTED
-- ITEMS  DELIVERY_NOT_FOUND STALE_EPOCH NOT_OWNER WRONG_STATE ALREADY_SETTLED GRANT_OPEN EXPIRED BLOCKED HELD PAUSED
--        TOO_MANY_CRASHES (of a replay)
-- STATES delivered and idle -> executing | held | failed (blocked, expired) | queued (its session moved)
do
  hf.register('hf_begin', { 'allow-oom' }, function(keys, argv)
    return hf.on_items(keys, argv, 'begin', 4, function(ctx, node, item)
      local delivery, epoch, grant = hf.delivery_id(item[1]), hf.integer(item[2], 'epoch'), hf.id(item[3], 'grant')
      local idempotent = hf.integer(item[4] or 0, 'idempotent') == 1
      return function() return hf.begin(ctx, node, delivery, epoch, grant, idempotent) end
    end, { grants = true })
  end)
end
