-- hf_claim: hands a node what it may take on next. Repeating a request answers the same deliveries and epochs.
-- KEYS   1 tag
-- ARGV   host node incarnation request count (1 to 1000) open_if_empty (1: an empty answer leaves the request
--        unanswered, so that it may be asked again until there is something; 0 or absent: it is answered)
-- REPLY  log_id, now, more 0|1, again 0|1 (answered before), next_at_ms (0: none), stream_id and bell_id (where both
--        streams ended), ghosts [entry...] (pending, and gone from the stream), missing [id...] (rows that are not there),
--        deliveries [[id, epoch, state, how new|parked|resume|takeover, attempts, conversation, message, payload, session?,
--        session_epoch?, sender?, parent?, content_type?, sha256?]...]; states are the present ones when it is answered again
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT NOT_JOINED SUPERSEDED HOST_RETIRED LEFT STALE_REQUEST NOT_ATTESTED
-- STATES queued -> claimed | queued (parked) | failed; claimed, mirrored, delivered and idle -> the same under a
--        new epoch, or held (poison); open attempts of gone executors -> unknown list
do
  hf.register('hf_claim', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local host, id, incarnation = hf.host_id(argv[1]), hf.id(argv[2], 'node'), hf.integer(argv[3], 'incarnation', 1)
    local request, count = hf.integer(argv[4], 'request', 1), hf.integer(argv[5], 'count', 1)
    local open_if_empty = hf.integer(argv[6] or 0, 'open_if_empty') == 1
    local node = hf.open_node(ctx, host, id, incarnation)
    hf.require_attested(ctx, host)
    return hf.claim(ctx, node, request, math.min(count, 1000), open_if_empty)
  end)
end
