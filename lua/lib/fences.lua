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

-- Since when and until when a fence's text says it stands. Any text is a reason, and stands for good.
local function times_of(text)
  if string.sub(text, 1, 1) ~= '{' then return nil, nil end
  local parsed, value = pcall(cjson.decode, text)
  if not parsed or type(value) ~= 'table' then return nil, nil end
  return tonumber(value.at), tonumber(value['until'])
end

local function standing(ctx, fields)
  local texts = redis.call('HMGET', hf.key.fences(ctx.tag), unpack(fields))
  local found = {}
  for at, field in ipairs(fields) do
    local text = texts[at]
    if text then
      local at_ms, expires_at = times_of(text)
      if not expires_at or expires_at > ctx.now then
        found[#found + 1] = { field = field, kind = string.match(field, '^(%a+):'), at = at_ms, expires_at = expires_at }
      end
    end
  end
  return found
end

-- A hold that stood when the delivery was released lets it pass, once; one that was set since does not.
local function passes(fence, row)
  if fence.kind ~= 'hold' or not row.released_at then return false end
  if fence.at and fence.at > row.released_at then return false end
  return string.find(row.released_holds, ' ' .. hf.escape(fence.field) .. ' ', 1, true) ~= nil
end

local function strictest(lists, row)
  for _, kind in ipairs(KINDS) do
    for _, list in ipairs(lists) do
      for _, fence in ipairs(list) do
        if fence.kind == kind and not (row and passes(fence, row)) then return fence end
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

-- The lists of fences that stand over a lane. Read once a lane in one call.
local function fences_over(ctx, host, conversation, session)
  ctx.lane_fences = ctx.lane_fences or {}
  local lane = host .. '/' .. hf.lane_name(conversation, session)
  if not ctx.lane_fences[lane] then
    local fields = fields_of('conversation:' .. conversation)
    if session then
      for _, field in ipairs(fields_of('session:' .. session)) do fields[#fields + 1] = field end
    end
    local gate = session and hf.session_gate(ctx, session)
    ctx.lane_fences[lane] = { wide_fences(ctx, host), standing(ctx, fields), { gate } }
  end
  return ctx.lane_fences[lane]
end

-- A session that is not open stops its deliveries as a fence would.
local function any_gate(ctx, session)
  return session and hf.session_gate(ctx, session) and true or false
end

local function any_fence(ctx)
  if ctx.fence_total == nil then ctx.fence_total = redis.call('HLEN', hf.key.fences(ctx.tag)) end
  return ctx.fence_total > 0
end

-- The strictest fence over a lane, or nil.
function hf.fence_over_lane(ctx, host, conversation, session)
  if not any_fence(ctx) and not any_gate(ctx, session) then return nil end
  return strictest(fences_over(ctx, host, conversation, session))
end

-- The strictest fence over one delivery: a released one passes the holds it was released from.
function hf.fence_over(ctx, row)
  if not any_fence(ctx) and not any_gate(ctx, row.session) then return nil end
  return strictest(fences_over(ctx, row.host, row.conversation, row.session), row)
end

-- The holds that stand over a delivery now, escaped and blank-separated, with blanks around.
function hf.holds_over(ctx, row)
  local names = { '' }
  if any_fence(ctx) then
    for _, list in ipairs(fences_over(ctx, row.host, row.conversation, row.session)) do
      for _, fence in ipairs(list) do
        if fence.kind == 'hold' and not fence.session then names[#names + 1] = hf.escape(fence.field) end
      end
    end
  end
  names[#names + 1] = ''
  return table.concat(names, ' ')
end

-- The fence of this field if it stands, or nil; a terminally closed session stands like a hold.
function hf.standing_fence(ctx, field)
  local session = string.match(field, '^route_terminal:session:(.+)$')
  if session then
    local gate = hf.session_gate(ctx, session)
    return gate and gate.field == field and gate or nil
  end
  return standing(ctx, { field })[1]
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
