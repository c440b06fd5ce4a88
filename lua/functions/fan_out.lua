-- hf_fan_out: makes the next deliveries that a message owes. Harmless to repeat.
-- KEYS   1 tag
-- ARGV   message chunk (1 to 1000)
-- REPLY  id, recipients, made, log_id, deliveries [[id, host, session, state]...]; complete when made = recipients
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT MESSAGE_NOT_FOUND NO_ROUTE RECORD_DAMAGED
-- STATES - -> queued
do
  hf.register('hf_fan_out', {}, function(keys, argv)
    local ctx = hf.open(keys)
    local message, chunk = hf.id(argv[1], 'message'), hf.integer(argv[2], 'chunk', 1)
    return hf.fan_out(ctx, message, math.min(chunk, 1000))
  end)
end
