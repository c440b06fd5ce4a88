// What a violation shows: the lines, shortened to what they say.
import type { Entry, FinalAttempt, FinalDelivery, Line } from './words.js'

const codeShown = 80

/** A line of a history, with the place where it stands. */
export function told(line: Line | undefined): string {
  if (line === undefined) return 'nothing: no line of any history'
  return `${line.file}:${line.number} ${JSON.stringify(line.data)}`
}

/** An entry of the log, with what it did to one delivery. */
export function logged(entry: Entry, delivery?: string): string {
  const about = delivery === undefined ? [] : entry.moves.filter(({ id }) => deliveryOf(id) === delivery)
  const moves = about.map(({ id, from, to }) => `${id} ${from}>${to}`)
  const more = [...entry.more].map(([name, value]) => `${name}=${value.slice(0, 120)}`)
  return ['log', entry.id, entry.verb, 'by', entry.actor, ...moves, ...more].join(' ')
}

/** A delivery and its attempts, as the record has them. */
export function recorded({ id, state, epoch, host, attempts, heldReason, reason }: FinalDelivery): string {
  const tries = attempts.map((attempt) => `${ended(attempt)} on ${attempt.node}`)
  const why = reason ?? heldReason
  return ['record', id, state, ...(why ? [`(${why})`] : []), `epoch ${epoch}`, `host ${host}`, ...tries].join(
    ' ',
  )
}

/** An attempt's number and how it ended, with the code it was given: `/1 not_sent (busy)`, `/2 result`. */
export function ended({ number, status, outcome, errorCode, replayedAt }: FinalAttempt): string {
  const code = outcome === 'result' ? undefined : errorCode
  const how = code === undefined ? (outcome ?? status) : `${outcome ?? status} (${code.slice(0, codeShown)})`
  return `/${number} ${how}${replayedAt === undefined ? '' : ', begun again as idempotent'}`
}

/** The delivery that an id names, or of which it names an attempt. */
export function deliveryOf(id: string): string {
  const slash = id.indexOf('/')
  return slash < 0 ? id : id.slice(0, slash)
}

/** Items by a key of theirs, each group in the order of the items. */
export function grouped<Item>(items: Iterable<Item>, keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}
