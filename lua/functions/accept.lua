-- hf_accept: stores a message and makes its first deliveries, or changes nothing.
-- KEYS   1 tag
-- ARGV   key fingerprint conversation sender parent|'' content_type|'' sha256 deliver_by|'' execute_by|'' resend_of|'' payload
--        then recipients, each host:<h> or session:<s>
-- REPLY  id, replayed 0|1, recipients, made, log_id, deliveries [[id, host, session, state]...]; made < recipients:
--        an obligation stands, hf_fan_out goes on. A replay names no deliveries: read them.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT IDEMPOTENCY_MISMATCH PAYLOAD_TOO_LARGE TOO_MANY_RECIPIENTS NO_ROUTE
--        HOST_FULL HOST_RETIRED MESSAGE_NOT_FOUND RECORD_DAMAGED
-- STATES - -> queued
do
  hf.register('hf_accept', {}, function(keys, argv)
    local ctx = hf.open(keys)
    if #argv < 11 then hf.refuse('INVALID_ARGUMENT', 'expected at least 11 arguments, got ' .. #argv) end
    local key, fingerprint, conversation, sender, parent = argv[1], argv[2], argv[3], argv[4], argv[5]
    local content_type, sha256, deliver_by, execute_by, payload = argv[6], argv[7], argv[8], argv[9], argv[11]
    local resend_of = argv[10]
    local header = {
      key = hf.id(key, 'key'),
      fingerprint = hf.id(fingerprint, 'fingerprint'),
      conversation = hf.id(conversation, 'conversation'),
      sender = hf.id(sender, 'sender'),
      parent = hf.optional_id(parent, 'parent'),
      content_type = hf.optional_id(content_type, 'content_type'),
      sha256 = hf.id(sha256, 'sha256'),
      deliver_by = hf.optional_integer(deliver_by, 'deliver_by'),
      execute_by = hf.optional_integer(execute_by, 'execute_by'),
      resend_of = hf.optional_id(resend_of, 'resend_of'),
    }
    return hf.accept(ctx, header, payload, hf.read_recipients(argv, 12))
  end)
end
