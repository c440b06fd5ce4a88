// @ts-check
// Broken builds. Each takes one safeguard away; a run under the right faults has to notice.

/**
 * One file of the package with one text of it replaced. Where a safeguard stands in two places of the file, both go.
 * @typedef {object} Mutant
 * @property {string} name
 * @property {string} file below the package
 * @property {{ text: string, becomes: string }[]} edits each text stands there exactly once
 * @property {string[]} by the promises it breaks: one of these has to be missed
 * @property {string[]} faults
 * @property {string[]} seeds that are known to catch it, the surest first
 * @property {number} [seconds] under load
 * @property {boolean} [probe] false: nodes have nobody to ask
 */

/** Nothing is broken in it: under the same faults it has to be green. @type {Mutant} */
export const control = {
  name: 'nothing broken',
  file: 'package.json',
  edits: [],
  by: [],
  faults: ['kill-node', 'stop-node', 'net-drop-reply', 'net-duplicate'],
  seeds: ['1'],
}

/** @type {readonly Mutant[]} */
export const mutants = [
  {
    name: 'no epoch check',
    file: 'lua/lib/deliveries.lua',
    edits: [{ text: "  if row.epoch ~= epoch then return 'STALE_EPOCH' end\n", becomes: '' }],
    by: ['I2', 'I5', 'I7', 'unknown'],
    faults: ['net-duplicate'],
    seeds: ['1', '2', '3'],
    seconds: 30,
  },
  {
    name: 'no owner check',
    file: 'lua/lib/deliveries.lua',
    edits: [
      {
        text: "  if row.epoch ~= epoch then return 'STALE_EPOCH' end\n  if row.owner ~= node.id or row.incarnation ~= node.incarnation then return 'NOT_OWNER' end\n",
        becomes: '',
      },
    ],
    by: ['I2', 'I5'],
    faults: ['stop-node'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'no grant check',
    file: 'lua/lib/begin.lua',
    edits: [
      {
        text: "  if number then return repeated(row, number, id) end\n  if hf.is_executing(row) then return hf.item_refused(id, 'GRANT_OPEN', row) end\n",
        becomes: '',
      },
    ],
    by: ['I2', 'I5'],
    faults: ['net-drop-reply'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'taken before its copy is durable',
    file: 'dist/node/handoff.js',
    edits: [
      {
        text: "        const stored = mirror.storeCopies(good.map(copyOf)).then(() => onPoint?.('copy.stored'));\n",
        becomes:
          "        const stored = undefined;\n        setTimeout(() => mirror.storeCopies(good.map(copyOf)).then(() => onPoint?.('copy.stored'), () => undefined), 2000);\n",
      },
    ],
    by: ['unknown'],
    faults: ['kill-point', 'kill-node'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'takeover after begin',
    file: 'lua/lib/recover.lua',
    edits: [{ text: '      if hf.is_executing(row) then\n', becomes: '      if false then\n' }],
    by: ['I2'],
    faults: ['kill-node', 'stop-node'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'begin skips the fence',
    file: 'lua/lib/begin.lua',
    edits: [
      {
        text: "  local fence = hf.fence_over(ctx, row)\n  if fence and fence.kind ~= 'pause' then\n",
        becomes: "  local fence = nil\n  if fence and fence.kind ~= 'pause' then\n",
      },
    ],
    by: ['I3'],
    faults: ['stop-node'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'commands sent again by themselves',
    file: 'dist/record/link.js',
    edits: [
      {
        text: '        maxRetriesPerRequest: 0,\n        autoResendUnfulfilledCommands: false,\n',
        becomes: '        maxRetriesPerRequest: null,\n        autoResendUnfulfilledCommands: true,\n',
      },
    ],
    by: ['I6'],
    faults: ['net-drop-reply'],
    seeds: ['1', '2', '3'],
    seconds: 30,
  },
  {
    name: 'everysec',
    file: 'torture/redis.mjs',
    edits: [{ text: "    appendfsync: 'always',\n", becomes: "    appendfsync: 'everysec',\n" }],
    by: ['I1', 'I8'],
    faults: ['power-cut'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'settle without owner',
    file: 'lua/lib/report.lua',
    edits: [
      {
        text: '  number = number or hf.attempt_of_grant(ctx, row, report.grant)\n  if not number then',
        becomes: '  number = number or row.attempts\n  if number == 0 then',
      },
      {
        text: "  if attempt.grant ~= report.grant or attempt.node ~= node.name then return refused(report.id, 'NOT_OWNER', row) end\n",
        becomes: '',
      },
      {
        text: "  if attempt.status ~= 'executing' then return keep_late(ctx, row, attempt, report) end\n",
        becomes: '',
      },
    ],
    by: ['I2', 'I5'],
    faults: ['kill-node'],
    seeds: ['1', '2', '3'],
    seconds: 30,
  },
  {
    name: 'trim by length',
    file: 'lua/lib/deliveries.lua',
    edits: [
      {
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
    file: 'lua/functions/join.lua',
    edits: [
      {
        text: "    if known then redis.call('HSET', key, 'resume', 1) end\n",
        becomes:
          "    if known then\n      redis.call('HSET', key, 'resume', 1)\n      redis.pcall('XGROUP', 'DELCONSUMER', hf.key.stream(ctx.tag, host), 'nodes', id)\n    end\n",
      },
    ],
    by: ['I4'],
    faults: ['kill-node'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'report keys ignored',
    file: 'lua/lib/report.lua',
    edits: [{ text: '  if known then return known end\n', becomes: '' }],
    by: ['I6'],
    faults: ['net-drop-reply'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'everything is reported unknown',
    file: 'dist/node/attempts.js',
    edits: [
      {
        text: '            outcome: provenBy(work, outcome),\n            final: ended,\n',
        becomes:
          "            outcome: { kind: 'outcome_unknown', errorCode: 'cautious' },\n            final: ended,\n",
      },
    ],
    by: ['unknown'],
    faults: ['kill-node'],
    seeds: ['1', '2', '3'],
    seconds: 10,
    probe: false,
  },
  {
    name: 'the start mark comes after the run',
    file: 'dist/node/attempts.js',
    edits: [
      {
        text: "            await mirror.markStarted(grant, number);\n        onPoint?.('start.marked');\n        const { outcome, ended } = await runHandler(work, grant, number);\n",
        becomes:
          "            ;\n        const { outcome, ended } = await runHandler(work, grant, number);\n        await mirror.markStarted(grant, number);\n        onPoint?.('start.marked');\n",
      },
    ],
    by: ['I2'],
    faults: ['kill-node'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'a crash is taken for not_sent',
    file: 'dist/node/recovery.js',
    edits: [{ text: '        if (grant.startedAtMs === undefined) {\n', becomes: '        if (true) {\n' }],
    by: ['I2'],
    faults: ['kill-node'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'keys without their content',
    file: 'lua/lib/accept.lua',
    edits: [{ text: '  if fingerprint ~= header.fingerprint then\n', becomes: '  if false then\n' }],
    by: ['I6'],
    faults: ['kill-hub'],
    seeds: ['1', '2', '3'],
  },
]
