// Follows one delivery through the log: who owned it, at which epoch, what was begun and how it was settled. Whatever
// could not have happened that way breaks I2 (who may execute) or I5 (what may change).
import { logged } from './evidence.js'
import { isTransition } from './transitions.js'
import type { AttemptStory, DeliveryStory, Entry, Move, Step } from './words.js'

/** A delivery while it is followed. */
interface Following extends DeliveryStory {
  owner: string | undefined
  /** Of the owner. */
  incarnation: number
  /** The entry by which the owner became it. */
  owned: Entry | undefined
}

/** Steps that only the owner of a delivery makes. */
const ownersSteps = new Set(['mirror', 'ack', 'take', 'begin', 'refuse'])

/** What the log tells of one delivery, and what of it cannot have been. */
export function follow(id: string, steps: readonly Step[]): DeliveryStory {
  const story: Following = {
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

function take(story: Following, step: Step): void {
  checkOwner(story, step)
  checkOpen(story, step)
  for (const move of inOrder(story, step)) make(story, step.entry, move)
  for (const move of step.attempts.toSorted(byLife)) makeOfAttempt(story, step.entry, move)
}

function accuse(
  story: Following,
  invariant: string,
  text: string,
  entries: readonly (Entry | undefined)[],
): void {
  const evidence = entries.flatMap((entry) => (entry === undefined ? [] : [logged(entry, story.id)]))
  story.violations.push({ invariant, id: story.id, text, evidence })
}

function checkOwner(story: Following, { entry, moves, attempts }: Step): void {
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

/** While an attempt is open nothing else happens to its delivery; once it is settled, nothing at all. */
function checkOpen(story: Following, { entry, moves, attempts }: Step): void {
  const last = story.attempts.at(-1)
  if (last === undefined || moves.length === 0) return
  if (last.settled === undefined) {
    const settles = attempts.some(({ from, to }) => from === 'executing' && to === 'not_sent')
    if (!settles) accuse(story, 'I2', 'moved while an attempt of it was open', [last.begun, entry])
  } else if (last.settled.status !== 'not_sent') {
    accuse(story, 'I5', `moved after it was ${last.settled.status}`, [last.settled.entry, entry])
  }
}

/** The moves of one entry in an order in which they can have been made. */
function inOrder(story: Following, { entry, moves }: Step): Move[] {
  const real = moves.filter(({ to }) => to !== 'parked')
  const order = chain(story.state, real)
  if (order !== undefined) return order
  const said = real.map(({ from, to }) => `${from}>${to}`).join(', ')
  accuse(story, 'I5', `${said} where it was ${story.state}`, [before(story, entry), entry])
  return real
}

function before({ steps }: DeliveryStory, entry: Entry): Entry | undefined {
  return steps.findLast((step) => step.entry.index < entry.index && step.moves.length > 0)?.entry
}

function chain(state: string, moves: readonly Move[]): Move[] | undefined {
  if (moves.length === 0) return []
  for (const [at, move] of moves.entries()) {
    if (move.from !== state) continue
    const rest = chain(move.to, moves.toSpliced(at, 1))
    if (rest !== undefined) return [move, ...rest]
  }
  return undefined
}

function make(story: Following, entry: Entry, { from, to }: Move): void {
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

function own(story: Following, entry: Entry, takenOver: boolean): void {
  const fromItself = story.owner === entry.actor && story.incarnation === entry.incarnation
  if (takenOver && fromItself)
    accuse(story, 'I2', `${entry.actor} took it over from itself`, [story.owned, entry])
  story.owner = entry.actor
  story.incarnation = entry.incarnation
  story.owned = entry
}

/** Where one entry tells several things of one attempt, they happened in the order of its life. */
const life = ['idle>executing', 'executing>executing', 'executing>unknown']

function byLife(one: Move, other: Move): number {
  return numberOf(one.id) - numberOf(other.id) || ageOf(one) - ageOf(other)
}

function ageOf({ from, to }: Move): number {
  const at = life.indexOf(`${from}>${to}`)
  return at < 0 ? life.length : at
}

function numberOf(attempt: string): number {
  return Number(attempt.slice(attempt.indexOf('/') + 1))
}

function makeOfAttempt(story: Following, entry: Entry, { id, from, to }: Move): void {
  const attempt = story.attempts.find((each) => each.id === id)
  if (from === 'idle' && to === 'executing') begin(story, entry, id)
  else if (attempt === undefined) {
    accuse(story, 'I5', `${id} ${from}>${to}, but it was never begun`, [entry])
  } else if (attempt.settled !== undefined) {
    const { status, entry: settled } = attempt.settled
    accuse(story, 'I5', `${id} became ${to}, but it was ${status} already`, [settled, entry])
  } else if (to === 'unknown') attempt.unknown.push(entry)
  else if (to === 'executing') {
    story.epoch += 1
    story.incarnation = entry.incarnation
    attempt.replays.push({ entry, epoch: story.epoch })
  } else settle(story, entry, attempt, to)
}

function begin(story: Following, entry: Entry, id: string): void {
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

function settle(story: Following, entry: Entry, attempt: AttemptStory, status: string): void {
  attempt.settled = { entry, status }
  if (entry.verb === 'resolve_attempt') return
  if (entry.verb !== 'report') accuse(story, 'I2', `${attempt.id} was settled by ${entry.verb}`, [entry])
  else if (entry.actor !== attempt.node) {
    const text = `${attempt.id} was settled by ${entry.actor}, but ${attempt.node} had begun it`
    accuse(story, 'I2', text, [attempt.begun, entry])
  }
}
