// @ts-check
// What a run of one seed says: nothing is wrong, something is, or that the machine was too busy to tell.

/** @typedef {import('../../src/testing/checker/words.ts').Violation} Violation */

/**
 * How a run ended. `verdict`: what it wrote with `--json`, where it came so far.
 * @typedef {{ code: number | null, verdict: any, stderr: string, tookMs: number }} Ended
 */
/**
 * `inconclusive`: nothing that was acknowledged is lost or was run twice, but it was too slow to be judged. Such a seed
 * is run once more, alone; what is so again is red.
 * @typedef {{ kind: 'green' | 'red' | 'inconclusive', why: string }} Judgement
 */

const shownOfStderr = 300

/** @param {Ended} ended @returns {Judgement} */
export function judge({ code, verdict, stderr }) {
  if (verdict === undefined)
    return { kind: 'inconclusive', why: `no verdict (exit ${code}): ${tailOf(stderr)}` }
  const { ok, violations = [], unexpected = [], isHealed, settled } = verdict
  if (ok === true) return { kind: 'green', why: '' }
  if (unexpected.length > 0) return { kind: 'red', why: unexpected.join('; ') }
  const isLate = isHealed === false || (settled?.settled === false && settled.isMoving !== false)
  const serious = violations.filter((/** @type {Violation} */ each) => !isOfSlowness(each, isLate))
  if (serious.length > 0) return { kind: 'red', why: saidOf(serious) }
  // It stood still, and somebody will have to say why.
  if (!isLate && settled?.settled === false)
    return { kind: 'red', why: `not settled: ${JSON.stringify(settled)}` }
  const slow = [
    ...(isHealed === false ? ['not everything came back in time'] : []),
    ...(settled?.settled === false ? [`not settled in time: ${JSON.stringify(settled)}`] : []),
    ...(violations.length > 0 ? [saidOf(violations)] : []),
  ]
  return { kind: 'inconclusive', why: slow.join('; ') }
}

/**
 * A rate below the least is slowness. Where it was cut short at the end, so is what had not come to its end.
 * @param {Violation} violation @param {boolean} isLate
 */
function isOfSlowness({ invariant, means }, isLate) {
  if (means !== undefined) return false
  return invariant === 'rate' || (isLate && (invariant === 'I7' || invariant === 'unknown'))
}

/** @param {readonly Violation[]} violations */
function saidOf(violations) {
  const [first] = violations
  if (first === undefined) return ''
  const more = violations.length === 1 ? '' : `, and ${violations.length - 1} more`
  return `${first.invariant} ${first.id}: ${first.text}${more}`
}

/** @param {string} text */
function tailOf(text) {
  return text.trim().slice(-shownOfStderr).replaceAll('\n', ' | ')
}
