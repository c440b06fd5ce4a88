// A verdict in words.
import { grouped } from './evidence.js'
import type { Verdict, Violation } from './words.js'

const idsShown = 20

/** What the checker holds a run to, in a word or two. */
const names: Readonly<Record<string, string>> = {
  I1: 'conservation',
  I2: 'exclusion',
  I3: 'fencing',
  I4: 'pending list',
  I5: 'monotony',
  I6: 'idempotency',
  I7: 'no silent stall',
  I8: 'durability',
  unknown: 'unknown without a cause',
  rate: 'too little was done',
  effects: 'effects',
}

/** The violations, by invariant and id; of each id the one with the shortest evidence first. */
export function textOf({ violations }: Verdict): string[] {
  return [...grouped(violations, ({ invariant }) => invariant)].flatMap(([invariant, found]) => {
    const ids = [...grouped(found, ({ id }) => id).values()]
    const shown = ids.slice(0, idsShown).flatMap((each) => each.toSorted(byEvidence).flatMap(shownAs))
    const left = ids.length - idsShown
    const head = `${headOf(invariant)}: ${ids.length} ${ids.length === 1 ? 'case' : 'cases'}`
    return [head, ...shown, ...(left > 0 ? [`  … and ${left} more`] : [])]
  })
}

function headOf(invariant: string): string {
  const name = names[invariant]
  return /^I\d$/.test(invariant) && name !== undefined ? `${invariant}, ${name}` : (name ?? invariant)
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
