-- Fences: one hash, `<kind>:<scope>` -> reason (JSON or plain text), evaluated where a claim or begin decides.

local KINDS = { 'block', 'hold', 'pause' } -- precedence
local IS_KIND = { block = true, hold = true, pause = true }

-- The hash field of a fence, after checking kind and scope.
function hf.fence_field(kind, scope)
  if not IS_KIND[kind] then
    hf.refuse('INVALID_ARGUMENT', 'a fence is pause, hold or block, not "' .. tostring(kind) .. '"')
  end
  local dimension, name = string.match(scope or '', '^(%a+):(.+)$')
  if scope == 'hub' then return kind .. ':hub' end
  if dimension == 'host' then
    hf.host_id(name)
  elseif dimension == 'conversation' or dimension == 'session' then
    hf.id(name, dimension)
  else
    hf.refuse('INVALID_ARGUMENT', 'a scope is hub, host:<h>, conversation:<c> or session:<s>, not "' .. tostring(scope) .. '"')
  end
  return kind .. ':' .. scope
end

-- Until when a fence's text says it stands; nil without expiry. Any text is a reason.
local function expiry_of(text)
  if string.sub(text, 1, 1) ~= '{' then return nil end
  local parsed, value = pcall(cjson.decode, text)
  return parsed and type(value) == 'table' and tonumber(value['until']) or nil
end

local function standing(ctx, fields)
  local texts = redis.call('HMGET', hf.key.fences(ctx.tag), unpack(fields))
  local found = {}
  for at, field in ipairs(fields) do
    local text = texts[at]
    if text then
      local expires_at = expiry_of(text)
      if not expires_at or expires_at > ctx.now then
        found[#found + 1] = { field = field, kind = string.match(field, '^(%a+):'), expires_at = expires_at }
      end
    end
  end
  return found
end

local function strictest(...)
  for _, kind in ipairs(KINDS) do
    for _, list in ipairs({ ... }) do
      for _, fence in ipairs(list) do
        if fence.kind == kind then return fence end
      end
    end
  end
  return nil
end

local function fields_of(scope)
  local fields = {}
  for at, kind in ipairs(KINDS) do fields[at] = kind .. ':' .. scope end
  return fields
end

local function wide_fences(ctx, host)
  ctx.wide_fences = ctx.wide_fences or {}
  if not ctx.wide_fences[host] then
    local fields = fields_of('hub')
    for _, field in ipairs(fields_of('host:' .. host)) do fields[#fields + 1] = field end
    ctx.wide_fences[host] = standing(ctx, fields)
  end
  return ctx.wide_fences[host]
end

-- The strictest fence over a lane, or nil. Read once a lane in one call.
function hf.fence_over(ctx, host, conversation, session)
  if ctx.fence_total == nil then ctx.fence_total = redis.call('HLEN', hf.key.fences(ctx.tag)) end
  if ctx.fence_total == 0 then return nil end
  ctx.lane_fences = ctx.lane_fences or {}
  local lane = host .. '/' .. hf.lane_name(conversation, session)
  if ctx.lane_fences[lane] == nil then
    local fields = fields_of('conversation:' .. conversation)
    if session then
      for _, field in ipairs(fields_of('session:' .. session)) do fields[#fields + 1] = field end
    end
    ctx.lane_fences[lane] = strictest(wide_fences(ctx, host), standing(ctx, fields)) or false
  end
  return ctx.lane_fences[lane] or nil
end

-- Sets a fence; answers the standing reason it replaced, if any.
function hf.set_fence(ctx, kind, scope, reason, actor, until_ms)
  local field = hf.fence_field(kind, scope)
  if until_ms and until_ms <= ctx.now then
    hf.refuse('INVALID_ARGUMENT', 'until is ' .. until_ms .. ', which is not after the server time ' .. ctx.now)
  end
  local text = { reason = reason, actor = actor, at = ctx.now, ['until'] = until_ms }
  local replaced = redis.call('HGET', hf.key.fences(ctx.tag), field)
  hf.expect_type(hf.key.log(ctx.tag), 'stream')
  redis.call('HSET', hf.key.fences(ctx.tag), field, cjson.encode(text))
  hf.finish(ctx, kind, actor, { 'scope', scope, 'reason', reason })
  return { 'fence', field, 'replaced', replaced or '', 'log_id', ctx.log_id }
end
