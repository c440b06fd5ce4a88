// When an entry of the log was written, by the clock of the histories: the log has the clock of Redis, which jumps. What
// is known of some entries bounds all others, for their order is known.
import type { Case } from './words.js'

/** Between which two moments an entry of the log, by its index, was written: in ns, by the clock of the histories. */
export interface Times {
  earliest(index: number): number
  latest(index: number): number
}

/** Notes that an entry was written not before the one and not after the other, where these are known. */
type Bound = (index: number | undefined, after: number | undefined, before: number | undefined) => void

/** When each entry of the log can have been written. */
export function timesOf(file: Case): Times {
  const earliest = new Float64Array(file.entries.length).fill(Number.NEGATIVE_INFINITY)
  const latest = new Float64Array(file.entries.length).fill(Number.POSITIVE_INFINITY)
  const indexes = new Map(file.entries.map(({ id, index }) => [id, index]))
  const bound: Bound = (index, after, before) => {
    if (index === undefined) return
    if (after !== undefined) earliest[index] = Math.max(earliest[index] ?? after, after)
    if (before !== undefined) latest[index] = Math.min(latest[index] ?? before, before)
  }
  boundAccepts(file, indexes, bound)
  for (const { logId = '', invoke, answer } of file.acts) bound(indexes.get(logId), invoke.t, answer?.t)
  boundAttempts(file, bound)
  for (let at = 1; at < earliest.length; at += 1) {
    earliest[at] = Math.max(earliest[at] ?? 0, earliest[at - 1] ?? 0)
  }
  for (let at = latest.length - 2; at >= 0; at -= 1)
    latest[at] = Math.min(latest[at] ?? 0, latest[at + 1] ?? 0)
  return {
    earliest: (index) => earliest[index] ?? Number.NEGATIVE_INFINITY,
    latest: (index) => latest[index] ?? Number.POSITIVE_INFINITY,
  }
}

/** A message bears the id of the entry that records it. */
function boundAccepts({ acceptsOf }: Case, indexes: ReadonlyMap<string, number>, bound: Bound): void {
  for (const accepts of acceptsOf.values()) {
    const asked = accepts.filter(({ changed }) => !changed)
    const answered = asked.filter(({ type }) => type === 'ok')
    const [ms, sequence] = (answered[0]?.id ?? '').split('-')
    if (sequence === undefined) continue
    const entry = `${ms}-${Math.floor(Number(sequence) / 100)}`
    const after = Math.min(...asked.map(({ invoke }) => invoke.t))
    bound(
      indexes.get(entry),
      after,
      Math.min(...answered.map(({ answer }) => answer?.t ?? Number.POSITIVE_INFINITY)),
    )
  }
}

/** An attempt is begun before it runs, and settled after. */
function boundAttempts({ stories, runsOf }: Case, bound: Bound): void {
  for (const [id, story] of stories) {
    const runs = runsOf.get(id) ?? []
    for (const attempt of story.attempts) {
      const run = runs.find((each) => each.attempt === attempt.id)
      if (run === undefined) continue
      bound(attempt.begun.index, undefined, run.begin.t)
      if (attempt.settled?.entry.verb === 'report') bound(attempt.settled.entry.index, run.begin.t, undefined)
    }
  }
}
