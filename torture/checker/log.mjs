// @ts-check
// The log of the record: its entries, in their order, and what each did to whom.
import { deliveryOf } from './evidence.mjs'
import { DamagedHistory } from './read.mjs'

/** @typedef {import('./words.mjs').Entry} Entry */
/** @typedef {import('./words.mjs').LogEntry} LogEntry */
/** @typedef {import('./words.mjs').Move} Move */
/** @typedef {import('./words.mjs').Step} Step */

/** @param {LogEntry[]} log @returns {Entry[]} */
export function entriesOf(log) {
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

/** @param {LogEntry} read @param {number} index @returns {Entry} */
function entryOf({ id, fields }, index) {
  /** @type {Entry} */
  const entry = {
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

/** Under which incarnation each actor spoke. @param {Entry[]} entries */
function noteIncarnations(entries) {
  /** @type {Map<string, number>} */
  const known = new Map()
  for (const entry of entries) {
    if (entry.verb === 'join') known.set(entry.actor, Number(entry.more.get('incarnation')))
    entry.incarnation = known.get(entry.actor) ?? 0
  }
}

/** @param {string} one @param {string} other */
function isBefore(one, other) {
  const [ms = 0, sequence = 0] = one.split('-').map(Number)
  const [otherMs = 0, otherSequence = 0] = other.split('-').map(Number)
  return ms === otherMs ? sequence < otherSequence : ms < otherMs
}

const ofOthers = /^(session|effect):/

/** What happened to each delivery, in order. @param {Entry[]} entries @returns {Map<string, Step[]>} */
export function stepsOf(entries) {
  /** @type {Map<string, Step[]>} */
  const found = new Map()
  for (const entry of entries) {
    for (const move of entry.moves) {
      if (!ofOthers.test(move.id)) addMove(found, entry, move)
    }
  }
  return found
}

/** @param {Map<string, Step[]>} found @param {Entry} entry @param {Move} move */
function addMove(found, entry, move) {
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
