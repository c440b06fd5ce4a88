-- hf_heartbeat: this process lives. Carries when its work loop last made progress, its blocking time, and what
-- its mirror's commits took, both since the last beat. Taken on a retired host too: what was begun there may still run.
-- KEYS   1 tag
-- ARGV   host node incarnation last_log_id progress_age_ms blocking_ms blocking_longest_ms mirror_commits mirror_ms
--        mirror_longest_ms (from progress_age_ms on: 0 where absent)
-- REPLY  now, log_id, heartbeat_ms, stale_after_ms
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT NOT_JOINED SUPERSEDED LEFT
-- STATES none
do
  hf.register('hf_heartbeat', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local host, id, incarnation = hf.host_id(argv[1]), hf.id(argv[2], 'node'), hf.integer(argv[3], 'incarnation', 1)
    local seen_log_id = hf.log_id(argv[4], 'last_log_id')
    local progress_age_ms = hf.integer(argv[5] or 0, 'progress_age_ms')
    local blocking_ms, longest_ms = hf.integer(argv[6] or 0, 'blocking_ms'), hf.integer(argv[7] or 0, 'blocking_longest_ms')
    local commits, mirror_ms = hf.integer(argv[8] or 0, 'mirror_commits'), hf.integer(argv[9] or 0, 'mirror_ms')
    local mirror_longest_ms = hf.integer(argv[10] or 0, 'mirror_longest_ms')
    local node = hf.open_process(ctx, host, id, incarnation)
    hf.present(ctx, host, id, seen_log_id)
    hf.beat(ctx, node, 'progress_at', ctx.now - progress_age_ms, 'blocking_ms', blocking_ms,
      'blocking_longest_ms', longest_ms, 'mirror_commits', commits, 'mirror_ms', mirror_ms,
      'mirror_longest_ms', mirror_longest_ms, 'last_log_id', seen_log_id)
    return {
      'now', ctx.now, 'log_id', hf.last_log_id(ctx), 'heartbeat_ms', hf.setting(ctx, 'heartbeat_ms'),
      'stale_after_ms', hf.setting(ctx, 'stale_after_ms'),
    }
  end)
end
