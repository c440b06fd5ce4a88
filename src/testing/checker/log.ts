// The log of the record: its entries, in their order, and what each did to whom.
import { deliveryOf } from './evidence.js'
import { DamagedHistory } from './read.js'
import type { Entry, LogEntry, Move, Step } from './words.js'

/** @throws DamagedHistory where the log is not in its order */
export function entriesOf(log: readonly LogEntry[]): Entry[] {
  const entries = log.map(entryOf)
  noteIncarnations(entries)
  for (const [index, entry] of entries.entries()) {
    const before = entries[index - 1]
    if (before !== undefined && !isBefore(before.id, entry.id)) {
      throw new DamagedHistory(`final.json: the log has ${entry.id} after ${before.id}`)
    }
  }
  return entries
}

function entryOf({ id, fields }: LogEntry, index: number): Entry {
  const entry: Entry = {
    index,
    id,
    ms: Number(id.split('-')[0]),
    verb: '',
    actor: '',
    incarnation: 0,
    moves: [],
    more: new Map(),
  }
  let ids = ''
  let from = ''
  for (const [name, value] of fields) {
    if (name === 'verb') entry.verb = value
    else if (name === 'actor') entry.actor = value
    else if (name === 'ids') ids = value
    else if (name === 'from') from = value
    else if (name === 'to') for (const each of ids.split(' ')) entry.moves.push({ id: each, from, to: value })
    else if (name !== 'hosts') entry.more.set(name, value)
  }
  return entry
}

/** Under which incarnation each actor spoke. */
function noteIncarnations(entries: readonly Entry[]): void {
  const known = new Map<string, number>()
  for (const entry of entries) {
    if (entry.verb === 'join') known.set(entry.actor, Number(entry.more.get('incarnation')))
    entry.incarnation = known.get(entry.actor) ?? 0
  }
}

function isBefore(one: string, other: string): boolean {
  const [ms = 0, sequence = 0] = one.split('-').map(Number)
  const [otherMs = 0, otherSequence = 0] = other.split('-').map(Number)
  return ms === otherMs ? sequence < otherSequence : ms < otherMs
}

const ofOthers = /^(session|effect):/

/** What happened to each delivery, in order. */
export function stepsOf(entries: readonly Entry[]): Map<string, Step[]> {
  const found = new Map<string, Step[]>()
  for (const entry of entries) {
    for (const move of entry.moves) {
      if (!ofOthers.test(move.id)) addMove(found, entry, move)
    }
  }
  return found
}

function addMove(found: Map<string, Step[]>, entry: Entry, move: Move): void {
  const delivery = deliveryOf(move.id)
  const steps = found.get(delivery) ?? []
  if (steps.length === 0) found.set(delivery, steps)
  let step = steps.at(-1)
  if (step?.entry !== entry) {
    step = { entry, moves: [], attempts: [] }
    steps.push(step)
  }
  if (move.id === delivery) step.moves.push(move)
  else step.attempts.push(move)
}
