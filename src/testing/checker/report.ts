// A verdict in words.
import { grouped } from './evidence.js'
import type { Verdict, Violation } from './words.js'

const idsShown = 20

/** The violations, by invariant and id; of each id the one with the shortest evidence first. */
export function textOf({ violations }: Verdict): string[] {
  return [...grouped(violations, ({ invariant }) => invariant)].flatMap(([invariant, found]) => {
    const ids = [...grouped(found, ({ id }) => id).values()]
    const shown = ids.slice(0, idsShown).flatMap((each) => each.toSorted(byEvidence).flatMap(shownAs))
    const left = ids.length - idsShown
    return [`${invariant}: ${ids.length} ids`, ...shown, ...(left > 0 ? [`  … and ${left} more`] : [])]
  })
}

function byEvidence(one: Violation, other: Violation): number {
  return one.evidence.length - other.evidence.length
}

function shownAs({ invariant, id, text, evidence }: Violation): string[] {
  return [`  ${invariant} ${id}: ${text}`, ...evidence.map((line) => `      ${line}`)]
}

/** The last line of a run. */
export function summaryOf({
  acknowledged,
  lost,
  twice,
  unknown,
  explained,
}: Pick<Verdict, 'acknowledged' | 'lost' | 'twice' | 'unknown' | 'explained'>): string {
  const how = explained === unknown ? 'all explained' : `${unknown - explained} of them unexplained`
  return `acknowledged ${acknowledged}, lost ${lost}, executed twice ${twice}, unknown ${unknown} (${how})`
}
