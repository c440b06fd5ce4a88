// @ts-check
// Follows one delivery through the log: who owned it, at which epoch, what was begun and how it was settled. Whatever
// could not have happened that way breaks I2 (who may execute) or I5 (what may change).
import { logged } from './evidence.mjs'
import { isTransition } from './transitions.mjs'

/** @typedef {import('./words.mjs').AttemptStory} AttemptStory */
/** @typedef {import('./words.mjs').DeliveryStory} DeliveryStory */
/** @typedef {import('./words.mjs').Entry} Entry */
/** @typedef {import('./words.mjs').Move} Move */
/** @typedef {import('./words.mjs').Step} Step */

/** @typedef {DeliveryStory & { owner: string | undefined, incarnation: number, owned: Entry | undefined }} Following */

/** Steps that only the owner of a delivery makes. */
const ownersSteps = new Set(['mirror', 'ack', 'take', 'begin', 'refuse'])

/** @param {string} id @param {Step[]} steps @returns {DeliveryStory} */
export function follow(id, steps) {
  /** @type {Following} */
  const story = {
    id,
    steps,
    state: 'queued',
    epoch: 0,
    attempts: [],
    violations: [],
    owner: undefined,
    incarnation: 0,
    owned: undefined,
  }
  for (const step of steps) take(story, step)
  return story
}

/** @param {Following} story @param {Step} step */
function take(story, step) {
  checkOwner(story, step)
  checkOpen(story, step)
  for (const move of inOrder(story, step)) make(story, step.entry, move)
  for (const move of step.attempts.toSorted(byLife)) makeOfAttempt(story, step.entry, move)
}

/** @param {Following} story @param {string} invariant @param {string} text @param {(Entry | undefined)[]} entries */
function accuse(story, invariant, text, entries) {
  const evidence = entries.flatMap((entry) => (entry === undefined ? [] : [logged(entry, story.id)]))
  story.violations.push({ invariant, id: story.id, text, evidence })
}

/** @param {Following} story @param {Step} step */
function checkOwner(story, { entry, moves, attempts }) {
  const { owner, owned } = story
  if (!ownersSteps.has(entry.verb)) return
  const replays = moves.length === 0 && attempts.every(({ from }) => from === 'executing')
  if (owner !== entry.actor) {
    accuse(story, 'I2', `${entry.verb} by ${entry.actor}, but ${owner ?? 'nobody'} owned it`, [owned, entry])
  } else if (!replays && story.incarnation !== entry.incarnation) {
    const which = `incarnation ${entry.incarnation}, but incarnation ${story.incarnation} owned it`
    accuse(story, 'I2', `${entry.verb} by ${which}`, [owned, entry])
  }
}

/** While an attempt is open nothing else happens to its delivery; once it is settled, nothing at all. @param {Following} story @param {Step} step */
function checkOpen(story, { entry, moves, attempts }) {
  const last = story.attempts.at(-1)
  if (last === undefined || moves.length === 0) return
  if (last.settled === undefined) {
    const settles = attempts.some(({ from, to }) => from === 'executing' && to === 'not_sent')
    if (!settles) accuse(story, 'I2', 'moved while an attempt of it was open', [last.begun, entry])
  } else if (last.settled.status !== 'not_sent') {
    accuse(story, 'I5', `moved after it was ${last.settled.status}`, [last.settled.entry, entry])
  }
}

/** The moves of one entry in an order in which they can have been made. @param {Following} story @param {Step} step @returns {Move[]} */
function inOrder(story, { entry, moves }) {
  const real = moves.filter(({ to }) => to !== 'parked')
  const order = chain(story.state, real)
  if (order !== undefined) return order
  const said = real.map(({ from, to }) => `${from}>${to}`).join(', ')
  accuse(story, 'I5', `${said} where it was ${story.state}`, [before(story, entry), entry])
  return real
}

/** @param {DeliveryStory} story @param {Entry} entry */
function before({ steps }, entry) {
  return steps.findLast((step) => step.entry.index < entry.index && step.moves.length > 0)?.entry
}

/** @param {string} state @param {Move[]} moves @returns {Move[] | undefined} */
function chain(state, moves) {
  if (moves.length === 0) return []
  for (const [at, move] of moves.entries()) {
    if (move.from !== state) continue
    const rest = chain(move.to, moves.toSpliced(at, 1))
    if (rest !== undefined) return [move, ...rest]
  }
  return undefined
}

/** @param {Following} story @param {Entry} entry @param {Move} move */
function make(story, entry, { from, to }) {
  if (!isTransition(from, to)) accuse(story, 'I5', `${from}>${to} is no transition`, [entry])
  if (to === 'claimed' || to === 'held' || to === 'queued' || from === to || entry.verb === 'cancel') {
    story.epoch += 1
  }
  if (entry.verb === 'claim' && (to === 'claimed' || (from === to && to !== 'queued' && to !== 'held'))) {
    own(story, entry, from === to)
  } else if (to === 'queued' || to === 'held') {
    story.owner = undefined
  }
  story.state = to
}

/** @param {Following} story @param {Entry} entry @param {boolean} takenOver */
function own(story, entry, takenOver) {
  const fromItself = story.owner === entry.actor && story.incarnation === entry.incarnation
  if (takenOver && fromItself)
    accuse(story, 'I2', `${entry.actor} took it over from itself`, [story.owned, entry])
  story.owner = entry.actor
  story.incarnation = entry.incarnation
  story.owned = entry
}

/** Where one entry tells several things of one attempt, they happened in the order of its life. */
const life = ['idle>executing', 'executing>executing', 'executing>unknown']

/** @param {Move} one @param {Move} other */
function byLife(one, other) {
  return numberOf(one.id) - numberOf(other.id) || ageOf(one) - ageOf(other)
}

/** @param {Move} move */
function ageOf({ from, to }) {
  const at = life.indexOf(`${from}>${to}`)
  return at < 0 ? life.length : at
}

/** @param {string} attempt */
function numberOf(attempt) {
  return Number(attempt.slice(attempt.indexOf('/') + 1))
}

/** @param {Following} story @param {Entry} entry @param {Move} move */
function makeOfAttempt(story, entry, { id, from, to }) {
  if (from === 'idle' && to === 'executing') return begin(story, entry, id)
  const attempt = story.attempts.find((each) => each.id === id)
  if (attempt === undefined)
    return accuse(story, 'I5', `${id} ${from}>${to}, but it was never begun`, [entry])
  const { settled } = attempt
  if (settled !== undefined) {
    return accuse(story, 'I5', `${id} became ${to}, but it was ${settled.status} already`, [
      settled.entry,
      entry,
    ])
  }
  if (to === 'unknown') attempt.unknown.push(entry)
  else if (to === 'executing') {
    story.epoch += 1
    story.incarnation = entry.incarnation
    attempt.replays.push({ entry, epoch: story.epoch })
  } else settle(story, entry, attempt, to)
}

/** @param {Following} story @param {Entry} entry @param {string} id */
function begin(story, entry, id) {
  const last = story.attempts.at(-1)
  const number = numberOf(id)
  if (last !== undefined && last.settled === undefined) {
    accuse(story, 'I2', `${id} was begun while ${last.id} was open`, [last.begun, entry])
  } else if (last?.settled !== undefined && last.settled.status !== 'not_sent') {
    accuse(story, 'I2', `${id} was begun after ${last.id} was ${last.settled.status}`, [
      last.settled.entry,
      entry,
    ])
  }
  if (number !== story.attempts.length + 1) {
    accuse(story, 'I5', `${id} was begun after ${story.attempts.length} attempts`, [last?.begun, entry])
  }
  if (story.state !== 'delivered') accuse(story, 'I5', `${id} was begun while it was ${story.state}`, [entry])
  const { actor: node } = entry
  story.attempts.push({ id, number, node, begun: entry, epoch: story.epoch, replays: [], unknown: [] })
}

/** @param {Following} story @param {Entry} entry @param {AttemptStory} attempt @param {string} status */
function settle(story, entry, attempt, status) {
  attempt.settled = { entry, status }
  if (entry.verb === 'resolve_attempt') return
  if (entry.verb !== 'report') accuse(story, 'I2', `${attempt.id} was settled by ${entry.verb}`, [entry])
  else if (entry.actor !== attempt.node) {
    const text = `${attempt.id} was settled by ${entry.actor}, but ${attempt.node} had begun it`
    accuse(story, 'I2', text, [attempt.begun, entry])
  }
}
