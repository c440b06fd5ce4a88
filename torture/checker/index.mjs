// @ts-check
// Judges a run by its history: what producers, operators and executors wrote down, the log of the record, and what the
// record held at the end. Pure over what was read; the work grows as n log n.
import { caseOf } from './case.mjs'
import { checkConservation } from './conservation.mjs'
import { checkDurability } from './durability.mjs'
import { checkExclusion } from './exclusion.mjs'
import { checkFencing } from './fencing.mjs'
import { checkIdempotency } from './idempotency.mjs'
import { checkMonotony } from './monotony.mjs'
import { checkPending } from './pending.mjs'
import { checkRate } from './rate.mjs'
import { readHistory } from './read.mjs'
import { checkStalls } from './stalls.mjs'
import { checkUnknowns } from './unknowns.mjs'

export { DamagedHistory } from './read.mjs'

/** @typedef {import('./words.mjs').Final} Final */
/** @typedef {import('./words.mjs').Line} Line */
/** @typedef {import('./words.mjs').Rules} Rules */
/** @typedef {import('./words.mjs').Violation} Violation */

/**
 * `lost` and `twice` count deliveries and messages; `unknown` counts attempts, `explained` those of them with a cause.
 * @typedef {object} Verdict
 * @property {boolean} ok
 * @property {number} lines
 * @property {number} acknowledged keys
 * @property {number} deliveries that those are to make
 * @property {number} lost
 * @property {number} twice
 * @property {number} unknown
 * @property {number} explained
 * @property {Violation[]} violations
 */

/** What is wanted of a run that says nothing else. */
const leastPerSecond = 1

/**
 * @param {string} dir the folder of a history @param {Partial<Rules>} [rules] what the run itself says is the default
 * @returns {Verdict}
 * @throws DamagedHistory where nothing can be judged
 */
export function check(dir, rules = {}) {
  const { lines, final } = readHistory(dir)
  return judge(lines, final, rules)
}

/** @param {Line[]} lines @param {Final} final @param {Partial<Rules>} [rules] @returns {Verdict} */
export function judge(lines, final, rules = {}) {
  const file = caseOf(lines, final, { ...rulesOf(lines, final), ...rules })
  const unknowns = checkUnknowns(file)
  const rate = checkRate(file)
  const violations = [
    ...checkConservation(file),
    ...checkDurability(file),
    ...checkExclusion(file),
    ...checkFencing(file),
    ...checkPending(file),
    ...checkMonotony(file),
    ...checkIdempotency(file),
    ...checkStalls(file),
    ...unknowns.violations,
    ...rate.violations,
  ]
  return {
    ok: violations.length === 0,
    lines: file.lines + file.entries.length,
    acknowledged: rate.acknowledged,
    deliveries: rate.deliveries,
    lost: idsOf(violations, 'lost'),
    twice: idsOf(violations, 'twice'),
    unknown: unknowns.unknown,
    explained: unknowns.explained,
    violations,
  }
}

/** @param {Violation[]} violations @param {'lost' | 'twice'} means */
function idsOf(violations, means) {
  return new Set(violations.filter((each) => each.means === means).map(({ id }) => id)).size
}

/** @param {Line[]} lines @param {Final} final @returns {Rules} */
function rulesOf(lines, final) {
  const said = {
    ...final,
    ...lines.find(({ kind, data }) => kind === 'phase' && data.phase === 'load')?.data,
  }
  return {
    probe: said.probe === true,
    leastPerSecond: typeof said.leastPerSecond === 'number' ? said.leastPerSecond : leastPerSecond,
  }
}
