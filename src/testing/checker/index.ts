// Judges a run by its history: what producers, operators and executors wrote down, the log of the record, and what the
// record held at the end. Pure over what was read; the work grows as n log n.
import { caseOf } from './case.js'
import { checkConservation } from './conservation.js'
import { checkDurability } from './durability.js'
import { checkExclusion } from './exclusion.js'
import { checkFencing } from './fencing.js'
import { checkIdempotency } from './idempotency.js'
import { checkMonotony } from './monotony.js'
import { checkPending } from './pending.js'
import { checkRate } from './rate.js'
import { readHistory } from './read.js'
import { checkStalls } from './stalls.js'
import { checkUnknowns } from './unknowns.js'
import type { Final, Line, Rules, Verdict, Violation } from './words.js'

export { DamagedHistory } from './read.js'
export type { Final, Line, Rules, Verdict, Violation } from './words.js'

/** What is wanted of a run that says nothing else. */
const leastPerSecond = 1

/**
 * Judges the history in a folder. What the run itself says of its rules is the default.
 * @throws DamagedHistory where nothing can be judged
 */
export function check(dir: string, rules: Partial<Rules> = {}): Verdict {
  const { lines, final } = readHistory(dir)
  return judge(lines, final, rules)
}

/**
 * Judges lines of histories and what the record held at the end. What the run itself says of its rules is the default.
 * @throws DamagedHistory where nothing can be judged
 */
export function judge(lines: readonly Line[], final: Final, rules: Partial<Rules> = {}): Verdict {
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

function idsOf(violations: readonly Violation[], means: 'lost' | 'twice'): number {
  return new Set(violations.filter((each) => each.means === means).map(({ id }) => id)).size
}

function rulesOf(lines: readonly Line[], final: Final): Rules {
  const said: Readonly<Record<string, unknown>> = {
    ...final,
    ...lines.find(({ kind, data }) => kind === 'phase' && data.phase === 'load')?.data,
  }
  return {
    probe: said.probe === true,
    leastPerSecond: typeof said.leastPerSecond === 'number' ? said.leastPerSecond : leastPerSecond,
  }
}
