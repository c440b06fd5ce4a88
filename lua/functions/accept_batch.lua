-- hf_accept_batch: what hf_accept does, for several messages in one call. Each is accepted or refused for itself.
-- KEYS   1 tag
-- ARGV   for each message (1 to 100 of them): how many recipients it names, then the arguments of hf_accept
-- REPLY  results [the reply of hf_accept | failure 'CODE text' ...]
--        Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT (a list that cannot be taken apart) RECORD_DAMAGED; those of hf_accept stand in
--        the results
-- STATES - -> queued
do
  local WORDS = 11 -- of a message, beside its recipients
  local MOST = 100

  -- Where each message begins and ends in the list.
  local function places_of(argv)
    local places, at = {}, 1
    while at <= #argv do
      local last = at + WORDS + hf.integer(argv[at], 'the number of recipients')
      if last > #argv or #places == MOST then
        hf.refuse('INVALID_ARGUMENT', 'expected 1 to ' .. MOST .. ' messages of 11 arguments and their recipients each, got ' .. #argv .. ' arguments')
      end
      places[#places + 1] = { first = at + 1, last = last }
      at = last + 1
    end
    if #places == 0 then hf.refuse('INVALID_ARGUMENT', 'expected at least one message') end
    return places
  end

  -- The text of what stopped one message. A fault that is no refusal is passed on as it is.
  local function words_of(failure)
    if type(failure) ~= 'table' then return tostring(failure) end
    return failure.refusal or failure.err or 'unknown'
  end

  hf.register('hf_accept_batch', {}, function(keys, argv)
    local ctx = hf.open(keys)
    local items = {}
    for at, place in ipairs(places_of(argv)) do
      local read, item = pcall(hf.read_message, argv, place.first, place.last)
      items[at] = read and item or { failure = item }
    end
    hf.accept(ctx, items)
    local results = {}
    for at, item in ipairs(items) do
      results[at] = item.failure and { 'failure', words_of(item.failure) } or item.reply
    end
    return { 'results', results }
  end)
end
