// @ts-check
// Broken builds. Each takes one safeguard away; a run under the right faults has to notice. Beside them the controls:
// nothing is broken there, and runs under the same faults have to be green.
import { manyCopies, shortHolds } from './load.mjs'
import { nodeMutants } from './node.mjs'
import { recordMutants } from './record.mjs'
import { storeMutants } from './store.mjs'

/** A text of a file of the package, which stands there exactly once, and what becomes of it. @typedef {{ file: string, text: string, becomes: string }} Edit */

/**
 * Where a safeguard stands in two places, both go.
 * @typedef {object} Mutant
 * @property {string} name
 * @property {string} broken what is broken, in a sentence
 * @property {Edit[]} edits
 * @property {string[]} by the promises it breaks: one of these has to be missed
 * @property {string[]} faults
 * @property {string[]} seeds that are known to catch it, the surest first; of a control, those that all have to be green
 * @property {number} [seconds] under load
 * @property {number} [rate] messages a second that each producer sends
 * @property {boolean} [probe] false: nodes have nobody to ask
 * @property {readonly Edit[]} [load] edits that change the load, and break nothing: a control has them, too
 */

/** @type {readonly Mutant[]} */
export const controls = [
  {
    name: 'nothing broken',
    broken: 'Nothing: the build as it is, under the faults of the other runs.',
    edits: [],
    by: [],
    faults: ['kill-node', 'stop-node', 'kill-point', 'net-drop-reply', 'net-duplicate'],
    seeds: ['1', '2'],
  },
  {
    name: 'nothing broken, nobody to ask',
    broken: 'Nothing: nodes without a probe, so that what a kill left open stays unknown.',
    edits: [],
    by: [],
    faults: ['kill-node'],
    seeds: ['1'],
    probe: false,
  },
  {
    name: 'nothing broken, many short holds and late copies',
    broken:
      'Nothing: an operator who holds and lifts many times a second, and calls of nodes that arrive twice.',
    edits: [],
    load: [...shortHolds, ...manyCopies],
    by: [],
    faults: ['net-duplicate', 'stop-node'],
    seeds: ['1'],
    seconds: 20,
    rate: 60,
  },
  {
    name: 'nothing broken, power cuts',
    broken: 'Nothing: `appendfsync always`, under the power cuts that catch `everysec`.',
    edits: [],
    by: [],
    faults: ['power-cut'],
    seeds: ['1', '2'],
  },
  {
    name: 'nothing broken, power cuts under mirrors',
    broken: 'Nothing: mirrors that sync, under the power cuts that catch those that do not.',
    edits: [],
    by: [],
    faults: ['mirror-power-cut'],
    seeds: ['1'],
  },
]

/** @type {readonly Mutant[]} */
export const mutants = [...recordMutants, ...nodeMutants, ...storeMutants]
