// What nobody knows is to be rare, and to have a cause: a fault of its node while it was open, a time limit, a handler
// that threw. With an honest probe on every node nothing stays unknown.

import { logged, told } from './evidence.js'
import { isNode, slotOf } from './exclusion.js'
import { setAsideBy } from './set-aside.js'
import { timesOf } from './times.js'
import type { AttemptStory, Case, Fault, Violation } from './words.js'

/** Faults that take a node's mirror: nobody can ask any more what became of what it had begun. */
const orphaning = new Set(['mirror-deleted', 'mirror-corrupt'])

/** A fault is written down a moment before it is made. */
const slackNs = 500e6

/** Counts attempts, and deliveries that were set aside as a whole. */
export function checkUnknowns(file: Case): { unknown: number; explained: number; violations: Violation[] } {
  const times = timesOf(file)
  const ids = file.record.unknown.map(({ id }) => id)
  const setAside = setAsideBy(file, times)
  const violations = file.record.unknown.flatMap(({ id, reason }) => {
    const [delivery = ''] = id.split('/')
    if (reason === 'history_lost') return setAside(id)
    const attempt = file.stories.get(delivery)?.attempts.find((each) => each.id === id)
    if (attempt === undefined) return [unexplained(delivery, `${id} is unknown, and was never begun`, [])]
    const shown = [
      logged(attempt.begun, delivery),
      ...attempt.unknown.slice(0, 1).map((entry) => logged(entry, delivery)),
    ]
    const orphaned = { from: times.earliest(attempt.begun.index), to: file.final.t }
    if (file.faults.some((fault) => orphaning.has(fault.name) && explains(fault, attempt, orphaned)))
      return []
    if (file.rules.probe)
      return [unexplained(delivery, `${id} stayed unknown, though its node has a probe`, shown)]
    const open = {
      from: times.earliest(attempt.begun.index),
      to: attempt.unknown[0] === undefined ? file.final.t : times.latest(attempt.unknown[0].index),
    }
    if (ownCause(file, id) || file.faults.some((fault) => explains(fault, attempt, open))) return []
    return [
      unexplained(delivery, `${id} is unknown, and no fault of ${attempt.node} explains it`, [
        ...shown,
        ...marksOf(file, id),
      ]),
    ]
  })
  return { unknown: ids.length, explained: ids.length - violations.length, violations }
}

function unexplained(id: string, text: string, evidence: readonly string[]): Violation {
  return { invariant: 'unknown', id, text, evidence }
}

/** Its handler threw, or was over its time limit. */
function ownCause(file: Case, id: string): boolean {
  const [delivery = ''] = id.split('/')
  const runs = (file.runsOf.get(delivery) ?? []).filter(({ attempt }) => attempt === id)
  return runs.some(({ end, outcome }) => outcome === 'outcome_unknown' || end?.data.late === true)
}

function marksOf(file: Case, id: string): string[] {
  const [delivery = ''] = id.split('/')
  const runs = (file.runsOf.get(delivery) ?? []).filter(({ attempt }) => attempt === id)
  return runs.map(({ begin, end }) => told(end ?? begin))
}

function explains(
  { node, from, to }: Fault,
  attempt: AttemptStory,
  open: { from: number; to: number },
): boolean {
  if (node === undefined || !isNode(slotOf(attempt.node), slotOf(node))) return false
  return from - slackNs <= open.to && to + slackNs >= open.from
}
