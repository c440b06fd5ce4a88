import type { AttemptView, TimelineEntry } from '../contract/delivery-views.js'
import { present } from '../record/replies.js'

type Row = ReadonlyMap<string, string>

/** The `<state>_at` times of a row and of its attempts, in order: no log is needed to tell what happened. */
export function timelineOf(row: Row, attempts: readonly AttemptView[]): TimelineEntry[] {
  const own = [...row.keys()].flatMap((field) =>
    field.endsWith('_at') && !field.startsWith('attempt_')
      ? [stepOf(row, field.slice(0, -'_at'.length))]
      : [],
  )
  const tried = attempts.flatMap((attempt) => entriesOf(row, attempt))
  return [...own, ...tried].sort((one, other) => one.at - other.at || placeOf(one) - placeOf(other))
}

/** What one call did has one time: then the order is that of the states. */
const inOneCall: readonly string[] = ['queued', 'claimed', 'mirrored', 'delivered']

function placeOf({ what }: TimelineEntry): number {
  const at = inOneCall.indexOf(what)
  return at < 0 ? inOneCall.length : at
}

function stepOf(row: Row, name: string): TimelineEntry {
  // What a delivery is parked by is a fence, not somebody.
  const actor = name === 'parked' ? undefined : row.get(`${name}_by`)
  return {
    at: Number(row.get(`${name}_at`)),
    what: name.replaceAll('_', ' '),
    ...present('actor', actor || undefined),
    ...present('reason', reasonOf(row, name)),
  }
}

/** The fields that say why something happened, where they are not `<name>_reason` alone. */
const reasons: Readonly<Record<string, readonly string[]>> = {
  failed: ['failed_code', 'failed_detail'],
  held: ['held_reason', 'held_fence'],
  parked: ['parked_by'],
  resolved: ['evidence'],
}

function reasonOf(row: Row, name: string): string | undefined {
  const fields = reasons[name] ?? [`${name}_reason`]
  return (
    fields
      .map((field) => row.get(field))
      .filter(Boolean)
      .join(' ') || undefined
  )
}

function entriesOf(row: Row, attempt: AttemptView): TimelineEntry[] {
  const { id, node, begunAt, replayedAt, unknownAt, unknownReason, settledAt, outcome } = attempt
  const number = id.slice(id.lastIndexOf('/') + 1)
  const epoch = row.get(`attempt_${number}_epoch`)
  const begun = {
    at: begunAt,
    what: `attempt ${number} begun on ${node}`,
    actor: node,
    ...present('epoch', epoch === undefined ? undefined : Number(epoch)),
  }
  const entries: TimelineEntry[] = [begun]
  if (replayedAt !== undefined) {
    entries.push({ at: replayedAt, what: `attempt ${number} begun again on ${node}`, actor: node })
  }
  if (unknownAt !== undefined) {
    entries.push({
      at: unknownAt,
      what: `attempt ${number} unknown: ${unknownReason ?? ''}`,
      ...present('reason', unknownReason || undefined),
    })
  }
  if (settledAt !== undefined) {
    entries.push({
      at: settledAt,
      what: `attempt ${number} ${outcome ?? ''}`,
      actor: attempt.resolvedBy ?? node,
      ...present('reason', attempt.evidence ?? (outcome === 'result' ? undefined : attempt.errorCode)),
    })
  }
  return entries
}
