-- hf_note_lost: names messages that were accepted and are gone from the record, with the log entries that recorded them: an
-- older copy of it was put in place, or a replica that lacked them took over. What retention took is not among them.
-- KEYS   1 tag
-- ARGV   presenter, then 1 to 100 message ids that the presenter was answered for
-- REPLY  lost [id...] (those of them that are gone so), log_id
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES none
do
  local MOST = 100

  hf.register('hf_note_lost', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local presenter = hf.id(argv[1], 'presenter')
    if #argv < 2 or #argv > MOST + 1 then
      hf.refuse('INVALID_ARGUMENT', 'expected 1 to ' .. MOST .. ' message ids, got ' .. (#argv - 1))
    end
    local lost = {}
    for at = 2, #argv do
      local id = argv[at]
      if not string.find(id, '^%d+%-%d+$') then
        hf.refuse('INVALID_ARGUMENT', 'a message id is like 1764430000000-00000000, not "' .. id .. '"')
      end
      if hf.is_lost(ctx, id) then lost[#lost + 1] = id end
    end
    if #lost > 0 then hf.write_log(ctx, 'lost', presenter, { 'messages', table.concat(lost, ' ') }) end
    return { 'lost', lost, 'log_id', hf.last_log_id(ctx) }
  end)
end
