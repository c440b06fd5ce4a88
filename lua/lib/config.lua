-- The tunables: read at every call that needs one, so a change by `HSET <tag>:config` works at once.
-- src/contract/settings.ts holds the same table and a test compares them.

hf.settings = {
  accept_everysec = { default = 0, least = 0, most = 1 },
  accept_unseen_config = { default = 0, least = 0, most = 1 },
  heartbeat_ms = { default = 2000, least = 50, most = 3600000 },
  inline_fan_out = { default = 128, least = 1 },
  log_length = { default = 100000, least = 1000 },
  max_claim_bytes = { default = 16777216, least = 1024 },
  max_payload_bytes = { default = 1048576, least = 1 },
  max_queued_per_host = { default = 0, least = 0 },
  max_recipients = { default = 10000, least = 1 },
  max_redrive = { default = 10, least = 1 },
  max_result_bytes = { default = 262144, least = 256 },
  max_takeovers = { default = 5, least = 1 },
  open_hosts = { default = 1, least = 0, most = 1 },
  recovery_age_ms = { default = 60000, least = 0 },
  rehome_on_redrive = { default = 0, least = 0, most = 1 },
  report_deadline_ms = { default = 900000, least = 100 },
  retention_ms = { default = 604800000, least = 1000 },
  stale_after_ms = { default = 10000, least = 100 },
  sweep_audit_ms = { default = 3600000, least = 0 },
  sweep_claims_ms = { default = 30000, least = 0 },
  sweep_deadlines_ms = { default = 5000, least = 0 },
  sweep_effects_ms = { default = 30000, least = 0 },
  sweep_fan_out_ms = { default = 15000, least = 0 },
  sweep_held_ms = { default = 15000, least = 0 },
  sweep_nodes_ms = { default = 300000, least = 0 },
  sweep_parked_ms = { default = 15000, least = 0 },
  sweep_rehome_ms = { default = 30000, least = 0 },
  sweep_reports_ms = { default = 15000, least = 0 },
  sweep_retention_ms = { default = 60000, least = 0 },
  sweep_stale_ms = { default = 10000, least = 0 },
  viewer_payloads = { default = 0, least = 0, most = 1 },
  wait_replicas = { default = 0, least = 0 },
  wait_replicas_ms = { default = 1000, least = 10, most = 60000 },
}

local function configured(ctx)
  if not ctx.config then
    ctx.config = {}
    local fields = redis.call('HGETALL', hf.key.config(ctx.tag))
    for at = 1, #fields, 2 do ctx.config[fields[at]] = fields[at + 1] end
  end
  return ctx.config
end

-- The number that a text says, where it is a value of this setting.
local function value_of(known, text)
  local number = known and string.find(text, '^%d+$') and tonumber(text)
  return number and number >= known.least and number <= (known.most or 9007199254740991) and number or nil
end

-- Refuses a name that is no setting, and a text that is no value of it.
function hf.check_setting(name, text)
  local known = hf.settings[name]
  if not known then hf.refuse('INVALID_ARGUMENT', 'no setting "' .. tostring(name) .. '"') end
  if not value_of(known, text) then
    local range = known.least .. (known.most and ' to ' .. known.most or '')
    hf.refuse('INVALID_ARGUMENT', name .. ' must be a whole number from ' .. range .. ', not "' .. text .. '"')
  end
end

-- The live value of a setting; for a bad one the default is used.
function hf.setting(ctx, name)
  local known = hf.settings[name]
  local text = configured(ctx)[name]
  return text and value_of(known, text) or known.default
end

-- The fields of the config hash that are no setting, or no value of theirs; by name.
function hf.bad_settings(ctx)
  local bad = {}
  for name, text in pairs(configured(ctx)) do
    if not value_of(hf.settings[name], text) then bad[#bad + 1] = name end
  end
  table.sort(bad)
  return bad
end
