-- hf_attest: one step of proving that this server is not behind what nodes and hubs saw: after a start or a promotion
-- nothing is granted before. Where it is behind, or may be, the generation is raised, and what is unfinished on hosts whose
-- nodes have not all shown otherwise becomes unknown (`history_lost`). Anyone who may call it may drive it on.
-- KEYS   1 tag
-- ARGV   presenter last_log_id(what the presenter saw last; 0-0 for nothing) appendfsync(always | everysec | no | unseen:
--        as CONFIG says) presented_to('' or absent; the replication id of the last answer: what was presented to it is not
--        judged again) config_of('' or absent; the replication id of the server whose CONFIG was read: another one is
--        asked again)
-- REPLY  attested 0|1, more 0|1 (call again: a slice was done), generation, waited_for (nodes that have yet to speak,
--        blank-separated, the first ten), log_id, replication_id
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES queued, claimed, mirrored, delivered and idle -> unknown (history_lost); open attempts -> unknown list
do
  local POLICIES = { always = true, everysec = true, no = true, unseen = true }

  hf.register('hf_attest', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local presenter, seen, appendfsync = hf.id(argv[1], 'presenter'), hf.log_id(argv[2], 'last_log_id'), argv[3]
    if not POLICIES[appendfsync] then
      hf.refuse('INVALID_ARGUMENT', 'appendfsync is always, everysec, no or unseen, not "' .. tostring(appendfsync) .. '"')
    end
    return hf.attest(ctx, presenter, seen, appendfsync, argv[4], argv[5])
  end)
end
