-- hf_reconcile_lists: the hub's own indexes: their types, or a slice of one list, or effect and session rows.
-- KEYS   1 tag
-- ARGV   what(types|held|unknown|effects|sessions|nodes) repair(0|1) cursor (held, unknown; '' to begin), or id...
-- REPLY  cursor ('' at the end), found [about, code, what, repaired 0|1, about, ...]
-- ERRORS STORE_UNKNOWN INVALID_ARGUMENT
-- STATES none
do
  local ROWS = { effects = 'reconcile_effect', sessions = 'reconcile_session', nodes = 'reconcile_node' }
  local AT_MOST = 500

  hf.register('hf_reconcile_lists', { 'allow-oom' }, function(keys, argv)
    local ctx = hf.open(keys)
    local what, repair = argv[1], hf.integer(argv[2], 'repair') == 1
    if what == 'types' then return hf.found_reply(ctx, hf.reconcile_types(ctx, repair), '') end
    if what == 'held' or what == 'unknown' then
      local found, cursor = hf.reconcile_list(ctx, what, argv[3] or '', repair)
      return hf.found_reply(ctx, found, cursor)
    end
    if not ROWS[what] then hf.refuse('INVALID_ARGUMENT', 'no lists "' .. tostring(what) .. '"') end
    if #argv - 2 > AT_MOST then hf.refuse('INVALID_ARGUMENT', 'at most ' .. AT_MOST .. ' rows a call') end
    local found = {}
    for at = 3, #argv do hf[ROWS[what]](ctx, argv[at], repair, found) end
    return hf.found_reply(ctx, found, '')
  end)
end
