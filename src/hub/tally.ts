import type { Tally } from '../record/sweep-functions.js'

/** Two figures of one moment that should be the same. */
export interface Disagreeing {
  readonly about: 'conservation' | 'streams' | 'pending' | 'held' | 'awaiting'
  readonly what: string
}

/** What of the totals does not add up (invariants I1 and I4, and the lists). */
export function disagreementsOf(tally: Tally): Disagreeing[] {
  const { queued, claimed, mirrored, delivered, held, failed, unknown } = tally
  const present = queued + claimed + mirrored + delivered + held + failed + unknown
  const accounted = present + tally.owed + tally.pruned
  const found: Disagreeing[] = []
  const expect = (about: Disagreeing['about'], counted: number, there: number, what: string) => {
    if (counted !== there) found.push({ about, what: `${what}: ${counted} by the counts, ${there} there` })
  }
  if (tally.recipients !== accounted) {
    const parts = `${present} by state, ${tally.owed} owed, ${tally.pruned} pruned`
    found.push({ about: 'conservation', what: `${tally.recipients} recipients accepted, but ${parts}` })
  }
  expect('streams', queued + claimed + mirrored, tally.streams, 'entries in the streams')
  expect('pending', claimed + mirrored, tally.pending, 'pending entries')
  expect('held', held, tally.heldListed, 'held deliveries')
  expect('awaiting', delivered - tally.finished, tally.awaiting, 'deliveries that their hosts await')
  return found
}
