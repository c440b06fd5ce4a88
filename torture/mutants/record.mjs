// @ts-check
// What the functions of the record look after.
import { manyCopies, shortHolds } from './load.mjs'

/** @type {readonly import('./list.mjs').Mutant[]} */
export const recordMutants = [
  {
    name: 'no epoch check',
    broken: 'A step is taken from the owner of a delivery under whichever epoch it names.',
    edits: [
      {
        file: 'lua/lib/deliveries.lua',
        text: "  if row.epoch ~= epoch then return 'STALE_EPOCH' end\n",
        becomes: '',
      },
    ],
    by: ['I2', 'I5', 'I7', 'unknown'],
    load: [...shortHolds, ...manyCopies],
    faults: ['net-duplicate'],
    seeds: ['1', '2', '3'],
    seconds: 20,
    rate: 60,
  },
  {
    name: 'no owner check',
    broken: 'A step is taken from any node of the host, under any epoch.',
    edits: [
      {
        file: 'lua/lib/deliveries.lua',
        text: "  if row.epoch ~= epoch then return 'STALE_EPOCH' end\n  if row.owner ~= node.id or row.incarnation ~= node.incarnation then return 'NOT_OWNER' end\n",
        becomes: '',
      },
    ],
    by: ['I2', 'I5'],
    faults: ['stop-point'],
    seconds: 20,
    rate: 150,
    seeds: ['1', '2', '3'],
  },
  {
    name: 'no grant check',
    broken: 'A begin opens another attempt, whether one is open and whosever grant it has.',
    edits: [
      {
        file: 'lua/lib/begin.lua',
        text: "  if number then return repeated(row, number, id) end\n  if hf.is_executing(row) then return hf.item_refused(id, 'GRANT_OPEN', row) end\n",
        becomes: '',
      },
    ],
    by: ['I2', 'I5'],
    faults: ['net-drop-reply'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'takeover after begin',
    broken: 'A delivery of a gone node changes hands although an attempt of it is open.',
    edits: [
      {
        file: 'lua/lib/recover.lua',
        text: '      if hf.is_executing(row) then\n',
        becomes: '      if false then\n',
      },
    ],
    by: ['I2'],
    faults: ['kill-node', 'stop-node'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'begin skips the fence',
    broken: 'Fences are read when a delivery is claimed, and not again when it is begun.',
    edits: [
      {
        file: 'lua/lib/begin.lua',
        text: "  local fence = hf.fence_over(ctx, row)\n  if fence and fence.kind ~= 'pause' then\n",
        becomes: "  local fence = nil\n  if fence and fence.kind ~= 'pause' then\n",
      },
    ],
    by: ['I3'],
    faults: ['stop-node'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'fences read outside the function',
    broken: 'Claim and begin obey the fences as they were read up to 200 ms before the call.',
    edits: [
      {
        file: 'lua/lib/fences.lua',
        text: 'local function standing(ctx, fields)\n',
        becomes:
          "local read\nfunction hf.fences_read(ctx)\n  if not read or math.abs(ctx.now - read.at) > 200 then\n    local words = redis.call('HGETALL', hf.key.fences(ctx.tag))\n    read = { at = ctx.now, total = #words / 2, texts = {} }\n    for at = 1, #words, 2 do read.texts[words[at]] = words[at + 1] end\n  end\n  return read\nend\n\nlocal function standing(ctx, fields)\n",
      },
      {
        file: 'lua/lib/fences.lua',
        text: "  local texts = redis.call('HMGET', hf.key.fences(ctx.tag), unpack(fields))\n",
        becomes:
          '  local texts = {}\n  for at, field in ipairs(fields) do texts[at] = hf.fences_read(ctx).texts[field] end\n',
      },
      {
        file: 'lua/lib/fences.lua',
        text: "ctx.fence_total = redis.call('HLEN', hf.key.fences(ctx.tag))",
        becomes: 'ctx.fence_total = hf.fences_read(ctx).total',
      },
    ],
    by: ['I3'],
    load: shortHolds,
    faults: ['stop-node'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'settle without owner',
    broken: 'A report settles the latest attempt, whoever began it and whatever became of it.',
    edits: [
      {
        file: 'lua/lib/report.lua',
        text: '  number = number or hf.attempt_of_grant(ctx, row, report.grant)\n',
        becomes: '  number = number or row.attempts > 0 and row.attempts or nil\n',
      },
      {
        file: 'lua/lib/report.lua',
        text: "  if attempt.grant ~= report.grant or attempt.node ~= node.name then return refused(report.id, 'NOT_OWNER', row) end\n",
        becomes: '',
      },
      {
        file: 'lua/lib/report.lua',
        text: "  if attempt.status ~= 'executing' then return keep_late(ctx, row, attempt, report) end\n",
        becomes: '',
      },
    ],
    by: ['I2', 'I5'],
    faults: ['kill-point', 'kill-node'],
    seeds: ['1', '2', '3'],
    seconds: 30,
  },
  {
    name: 'trim by length',
    broken: 'The stream of a host is cut to its latest entries.',
    edits: [
      {
        file: 'lua/lib/deliveries.lua',
        text: "redis.call('XADD', hf.key.stream(ctx.tag, host), '*', 'delivery', id)",
        becomes: "redis.call('XADD', hf.key.stream(ctx.tag, host), 'MAXLEN', 10, '*', 'delivery', id)",
      },
    ],
    by: ['I4'],
    faults: ['kill-node', 'stop-node'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'a consumer deleted with what it has pending',
    broken: 'A node that joins again is made a new consumer, and what it had pending is forgotten.',
    edits: [
      {
        file: 'lua/functions/join.lua',
        text: "    if known then redis.call('HSET', key, 'resume', 1) end\n",
        becomes:
          "    if known then\n      redis.call('HSET', key, 'resume', 1)\n      redis.pcall('XGROUP', 'DELCONSUMER', hf.key.stream(ctx.tag, host), 'nodes', id)\n    end\n",
      },
    ],
    by: ['I4'],
    faults: ['kill-node', 'kill-point'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'report keys ignored',
    broken: 'A report that comes again under its key is taken for another one, which comes too late.',
    edits: [{ file: 'lua/lib/report.lua', text: '  if known then return known end\n', becomes: '' }],
    by: ['I6'],
    faults: ['net-drop-reply'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'keys without their content',
    broken: 'Other content under a key in use is answered like a repeat.',
    edits: [
      {
        file: 'lua/lib/accept.lua',
        text: '  if fingerprint ~= header.fingerprint then\n',
        becomes: '  if false then\n',
      },
    ],
    by: ['I6'],
    faults: ['kill-hub'],
    seeds: ['1', '2', '3'],
  },
]
