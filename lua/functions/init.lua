-- hf_init: makes the identity of a record. Nothing else ever does.
-- KEYS   1 tag
-- ARGV   store_id after_loss(0|1)
-- REPLY  store_id, generation, made 0|1
-- ERRORS INVALID_ARGUMENT RECORD_DAMAGED NOTHING_LOST
-- STATES none
do
  local function leftovers(tag)
    local found = {}
    for _, name in ipairs({ 'log', 'hosts', 'counts', 'obligations' }) do
      if redis.call('EXISTS', hf.key[name](tag)) == 1 then found[#found + 1] = hf.key[name](tag) end
    end
    return found
  end

  hf.register('hf_init', {}, function(keys, argv)
    local tag = hf.check_tag(keys)
    local store_id, after_loss = hf.id(argv[1], 'store_id'), hf.integer(argv[2] or 0, 'after_loss') == 1
    local known = redis.call('HMGET', hf.key.identity(tag), 'store_id', 'generation')
    if known[1] then
      if after_loss then hf.refuse('NOTHING_LOST', 'the record ' .. known[1] .. ' is here, generation ' .. tostring(known[2])) end
      return { 'store_id', known[1], 'generation', tonumber(known[2]), 'made', 0 }
    end
    local found = leftovers(tag)
    if #found > 0 and not after_loss then
      hf.refuse('RECORD_DAMAGED', 'there is no identity, but ' .. table.concat(found, ', ') .. ' exist: data was lost; use --after-loss')
    end
    local now = hf.now_ms()
    local generation = after_loss and math.floor((now - hf.EPOCH_OF_GENERATIONS_MS) / 60000) or 0
    redis.call('HSET', hf.key.identity(tag), 'store_id', store_id, 'schema', hf.schema, 'generation', generation, 'made_at', now,
      'attested', hf.replication_id(), 'attested_at', now, 'rewound_at', now)
    return { 'store_id', store_id, 'generation', generation, 'made', 1 }
  end)
end
