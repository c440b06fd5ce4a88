-- hf_tally: what the counts say and what the indexes hold, of one moment.
-- KEYS   1 tag
-- ARGV   none
-- REPLY  log_id, recipients, pruned, finished, owed, streams, pending, awaiting, held_listed, and the count of each state
-- ERRORS STORE_UNKNOWN
-- STATES none
do
  hf.register('hf_tally', { 'no-writes' }, function(keys)
    return hf.tally(hf.open(keys))
  end)
end
