-- hf_accept: stores a message and makes its first deliveries, or changes nothing.
-- KEYS   1 tag
-- ARGV   key fingerprint conversation sender parent|'' content_type|'' sha256 deliver_by|'' execute_by|'' resend_of|'' payload
--        then recipients, each host:<h> or session:<s>
--        fingerprint: a word by which a repeat under the key is known, made of conversation, sender, parent, the set of
--        recipients and the payload's digest: whoever sends under the same keys makes it alike; sha256: of the payload, hex
-- REPLY  id, replayed 0|1, recipients, made, log_id, deliveries [[id, host, session, state]...]; made < recipients:
--        an obligation stands, hf_fan_out goes on. A replay names no deliveries: read them.
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT IDEMPOTENCY_MISMATCH PAYLOAD_TOO_LARGE TOO_MANY_RECIPIENTS NO_ROUTE
--        HOST_FULL HOST_RETIRED MESSAGE_NOT_FOUND RECORD_DAMAGED
-- STATES - -> queued
do
  hf.register('hf_accept', {}, function(keys, argv)
    local ctx = hf.open(keys)
    if #argv < 11 then hf.refuse('INVALID_ARGUMENT', 'expected at least 11 arguments, got ' .. #argv) end
    local item = hf.read_message(argv, 1, #argv)
    hf.accept(ctx, { item })
    if item.failure then error(item.failure) end
    return item.reply
  end)
end
