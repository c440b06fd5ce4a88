-- Batches: a node's steps on many deliveries in one call, answered item by item.

-- A report is taken from any process of the node; every other step only from the present one.
local function open_any(ctx, host, id, incarnation)
  local node = hf.read_node(ctx, host, id)
  if not node or incarnation > node.incarnation then
    hf.refuse('NOT_JOINED', 'node ' .. host .. '/' .. id .. ' incarnation ' .. incarnation .. ' has not joined')
  end
  return node
end

-- Parses every item before the first is carried out: a malformed batch changes nothing. `how`: `from_any` process of the
-- node it is taken, or it `grants` something and the record must be attested.
function hf.on_items(keys, argv, verb, width, parse, how)
  local ctx = hf.open(keys)
  local host, id, incarnation = hf.host_id(argv[1]), hf.id(argv[2], 'node'), hf.integer(argv[3], 'incarnation', 1)
  local steps = {}
  for at = 1, hf.groups(argv, 4, width) do
    local first = 4 + (at - 1) * width
    local item = { unpack(argv, first, first + width - 1) }
    steps[at] = item
  end
  local from_any, grants = how and how.from_any, how and how.grants
  local node = from_any and open_any(ctx, host, id, incarnation) or hf.open_node(ctx, host, id, incarnation)
  if grants then hf.require_attested(ctx, host) end
  for at, item in ipairs(steps) do steps[at] = parse(ctx, node, item, incarnation) end
  local results = {}
  for at, step in ipairs(steps) do results[at] = step() end
  hf.finish(ctx, verb, node.name)
  return { 'log_id', hf.last_log_id(ctx), 'results', results }
end
