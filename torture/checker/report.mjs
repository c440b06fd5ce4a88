// @ts-check
// A verdict in words.
import { grouped } from './evidence.mjs'

/** @typedef {import('./index.mjs').Verdict} Verdict */
/** @typedef {import('./words.mjs').Violation} Violation */

const idsShown = 20

/** The violations, by invariant and id; of each id the one with the shortest evidence first. @param {Verdict} verdict @returns {string[]} */
export function textOf({ violations }) {
  return [...grouped(violations, ({ invariant }) => invariant)].flatMap(([invariant, found]) => {
    const ids = [...grouped(found, ({ id }) => id).values()]
    const shown = ids.slice(0, idsShown).flatMap((each) => each.toSorted(byEvidence).flatMap(shownAs))
    const left = ids.length - idsShown
    return [`${invariant}: ${ids.length} ids`, ...shown, ...(left > 0 ? [`  … and ${left} more`] : [])]
  })
}

/** @param {Violation} one @param {Violation} other */
function byEvidence(one, other) {
  return one.evidence.length - other.evidence.length
}

/** @param {Violation} violation @returns {string[]} */
function shownAs({ invariant, id, text, evidence }) {
  return [`  ${invariant} ${id}: ${text}`, ...evidence.map((line) => `      ${line}`)]
}

/** The last line of a run. @param {Pick<Verdict, 'acknowledged' | 'lost' | 'twice' | 'unknown' | 'explained'>} verdict */
export function summaryOf({ acknowledged, lost, twice, unknown, explained }) {
  const how = explained === unknown ? 'all explained' : `${unknown - explained} of them unexplained`
  return `acknowledged ${acknowledged}, lost ${lost}, executed twice ${twice}, unknown ${unknown} (${how})`
}
