-- hf_begin: opens an attempt under a grant: the only permission to execute. Same grant, same process: same answer.
-- KEYS   1 tag
-- ARGV   host node incarnation, then items of: delivery epoch grant
-- REPLY  log_id, results [[id, ok, epoch, state, attempt | code, owner, detail]...]
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT NOT_JOINED SUPERSEDED HOST_RETIRED LEFT
-- STATES delivered and idle -> executing | failed (blocked, expired)
do
  hf.register('hf_begin', { 'allow-oom' }, function(keys, argv)
    return hf.on_items(keys, argv, 'begin', 3, function(ctx, node, item)
      local delivery, epoch, grant = hf.delivery_id(item[1]), hf.integer(item[2], 'epoch'), hf.id(item[3], 'grant')
      return function() return hf.begin(ctx, node, delivery, epoch, grant) end
    end)
  end)
end
