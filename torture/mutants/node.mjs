// @ts-check
// What a node looks after.

/** @type {readonly import('./list.mjs').Mutant[]} */
export const nodeMutants = [
  {
    name: 'acknowledged before its copy is durable',
    broken: 'A node takes a delivery, and stores its copy two seconds later.',
    edits: [
      {
        file: 'dist/node/handoff.js',
        text: "        const stored = mirror.storeCopies(good.map(copyOf)).then(() => onPoint?.('copy.stored'));\n",
        becomes:
          "        const stored = Promise.resolve();\n        setTimeout(() => mirror.storeCopies(good.map(copyOf)).then(() => onPoint?.('copy.stored'), () => undefined), 2000);\n",
      },
    ],
    by: ['unknown'],
    faults: ['kill-point', 'kill-node'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'everything is reported unknown',
    broken: 'However a handler ended, its outcome is reported as unknown.',
    edits: [
      {
        file: 'dist/node/attempts.js',
        text: '            outcome: provenBy(work, outcome),\n            final: ended,\n',
        becomes:
          "            outcome: { kind: 'outcome_unknown', errorCode: 'cautious' },\n            final: ended,\n",
      },
    ],
    by: ['unknown'],
    faults: ['kill-node'],
    seeds: ['1', '2', '3'],
    seconds: 8,
    probe: false,
  },
  {
    name: 'the start mark comes after the run',
    broken: 'A node notes that a handler was started when the handler has ended.',
    edits: [
      {
        file: 'dist/node/attempts.js',
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
    broken: 'What a killed process had begun is tried again as if it had never been started.',
    edits: [
      {
        file: 'dist/node/recovery.js',
        text: '        if (grant.startedAtMs === undefined) {\n',
        becomes: '        if (true) {\n',
      },
    ],
    by: ['I2'],
    faults: ['kill-node'],
    seeds: ['1', '2', '3'],
  },
  {
    name: 'a mirror that does not sync',
    broken: 'A mirror answers before what it was given is on the disk.',
    edits: [
      {
        file: 'dist/node/mirror/commits.js',
        text: '                await store.sync();\n',
        becomes: '                await Promise.resolve();\n',
      },
    ],
    by: ['I2', 'I8', 'unknown'],
    faults: ['mirror-power-cut'],
    seeds: ['1', '2', '3'],
  },
]
