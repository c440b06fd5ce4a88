-- All key names, built in one place. The tag is the slot; parts are escaped, so no name can reach
-- another key. src/record/keys.ts builds the same names and a test compares them.

local function encode_byte(character)
  return string.format('%%%02X', string.byte(character))
end

-- Percent-encodes all but [A-Za-z0-9._~:@+=,-].
function hf.escape(part)
  return (string.gsub(part, '[^%w%._~:@%+=,%-]', encode_byte))
end

local function decode_byte(digits)
  return string.char(tonumber(digits, 16))
end

function hf.unescape(part)
  return (string.gsub(part, '%%(%x%x)', decode_byte))
end

hf.key = {}

-- Library code may not loop while it loads (no ipairs there), so the names stand one by one.
function hf.key.identity(tag) return tag .. ':identity' end
function hf.key.config(tag) return tag .. ':config' end
function hf.key.fences(tag) return tag .. ':fences' end
function hf.key.obligations(tag) return tag .. ':obligations' end
function hf.key.held(tag) return tag .. ':held' end
function hf.key.unknown(tag) return tag .. ':unknown' end
function hf.key.hosts(tag) return tag .. ':hosts' end
function hf.key.nodes(tag) return tag .. ':nodes' end
function hf.key.counts(tag) return tag .. ':counts' end
function hf.key.log(tag) return tag .. ':log' end
function hf.key.settled_days(tag) return tag .. ':settled_days' end
function hf.key.settled_effect_days(tag) return tag .. ':settled_effect_days' end
function hf.key.stranded(tag) return tag .. ':stranded' end
function hf.key.deadlines(tag) return tag .. ':deadlines' end
function hf.key.sweep(tag, name) return tag .. ':sweep:' .. name end
function hf.key.sessions(tag) return tag .. ':sessions' end
function hf.key.children(tag, session) return tag .. ':children:' .. hf.escape(session) end
function hf.key.session_deliveries(tag, session) return tag .. ':session_deliveries:' .. hf.escape(session) end
function hf.key.session_attempts(tag, session) return tag .. ':session_attempts:' .. hf.escape(session) end
function hf.key.effects(tag) return tag .. ':effects' end
function hf.key.executing(tag) return tag .. ':executing' end
function hf.key.settled_effects(tag, day) return tag .. ':settled_effects:' .. day end
function hf.key.effect(tag, effect) return tag .. ':effect:' .. hf.escape(effect) end
function hf.key.principals(tag) return tag .. ':principals' end
function hf.key.certificates(tag) return tag .. ':certificates' end
function hf.key.liveness(tag) return tag .. ':liveness' end
function hf.key.doubted(tag) return tag .. ':doubted' end

function hf.key.stream(tag, host) return tag .. ':stream:' .. host end
function hf.key.bell(tag, host) return tag .. ':bell:' .. host end
function hf.key.awaiting(tag, host) return tag .. ':awaiting:' .. host end
function hf.key.parked(tag, host) return tag .. ':parked:' .. host end
function hf.key.host(tag, host) return tag .. ':host:' .. host end

function hf.key.message(tag, id) return tag .. ':message:' .. id end
function hf.key.payload(tag, id) return tag .. ':payload:' .. id end
function hf.key.recipients(tag, id) return tag .. ':recipients:' .. id end
function hf.key.delivery(tag, id) return tag .. ':delivery:' .. id end

function hf.key.holding(tag) return tag .. ':holding' end
function hf.key.held_by(tag, fence) return tag .. ':held:' .. hf.escape(fence) end
function hf.key.retired(tag) return tag .. ':retired' end
function hf.key.parked_hosts(tag) return tag .. ':parked' end
function hf.key.settled(tag, day) return tag .. ':settled:' .. day end
function hf.key.session(tag, session) return tag .. ':session:' .. hf.escape(session) end
function hf.key.principal(tag, name) return tag .. ':principal:' .. hf.escape(name) end
function hf.key.idempotency(tag, key) return tag .. ':idempotency:' .. hf.escape(key) end
function hf.key.node(tag, host, node) return tag .. ':node:' .. host .. '/' .. hf.escape(node) end

-- A lane's name inside its host: `<conversation>/<session>`, the session empty where there is none.
function hf.lane_name(conversation, session)
  return hf.escape(conversation) .. '/' .. (session and hf.escape(session) or '')
end

function hf.lane_parts(lane)
  local conversation, session = string.match(lane, '^([^/]*)/([^/]*)$')
  return hf.unescape(conversation), session ~= '' and hf.unescape(session) or nil
end

function hf.key.lane(tag, host, lane) return tag .. ':lane:' .. host .. '/' .. lane end

-- Delivery ids are `<message>.<n>`, attempt ids `<delivery>/<n>`.
function hf.message_of(delivery)
  return string.match(delivery, '^(%d+%-%d+)%.%d+$')
end

function hf.parse_attempt(attempt)
  local delivery, number = string.match(attempt, '^(%d+%-%d+%.%d+)/(%d+)$')
  return delivery, tonumber(number)
end

function hf.delivery_id(value)
  if type(value) ~= 'string' or not hf.message_of(value) then
    hf.refuse('INVALID_ARGUMENT', 'a delivery id is <message>.<n>, such as 1764430000000-00000000.1')
  end
  return value
end
