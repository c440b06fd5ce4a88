-- Batches: a node's steps on many deliveries in one call, answered item by item.

-- A report is taken from any process of the node; every other step only from the present one.
local function open_any(ctx, host, id, incarnation)
  local node = hf.read_node(ctx, host, id)
  if not node or incarnation > node.incarnation then
    hf.refuse('NOT_JOINED', 'node ' .. host .. '/' .. id .. ' incarnation ' .. incarnation .. ' has not joined')
  end
  return node
end

-- Parses every item before the first is carried out: a malformed batch changes nothing.
function hf.on_items(keys, argv, verb, width, parse, from_any)
  local ctx = hf.open(keys)
  local host, id, incarnation = hf.host_id(argv[1]), hf.id(argv[2], 'node'), hf.integer(argv[3], 'incarnation', 1)
  local steps = {}
  for at = 1, hf.groups(argv, 4, width) do
    local first = 4 + (at - 1) * width
    local item = { unpack(argv, first, first + width - 1) }
    steps[at] = item
  end
  local node = from_any and open_any(ctx, host, id, incarnation) or hf.open_node(ctx, host, id, incarnation)
  for at, item in ipairs(steps) do steps[at] = parse(ctx, node, item, incarnation) end
  local results = {}
  for at, step in ipairs(steps) do results[at] = step() end
  hf.finish(ctx, verb, node.name)
  return { 'log_id', hf.last_log_id(ctx), 'results', results }
end
