// I3: between the entry of the log that sets a fence and the one that lifts it, nothing that it covers is claimed first
// or begun. A delivery that was released passes the holds that stood then, once. A fence with an end stands until then.
import { deliveryOf, logged } from './evidence.js'
import type { Case, Entry, FinalDelivery, Violation } from './words.js'

interface Fence {
  /** `<kind>:<scope>`. */
  readonly field: string
  readonly kind: string
  readonly set: Entry
  /** When it lapses by itself, Unix ms by the clock of Redis. */
  readonly until: number | undefined
}

interface Released {
  readonly entry: Entry
  /** Those that stood then. */
  readonly holds: ReadonlySet<string>
}

/** The log, read from its beginning: what stands at an entry, and what was found until then. */
interface Walk {
  /** By field. */
  readonly standing: Map<string, Fence>
  /** By delivery: released, and not begun since. */
  readonly released: Map<string, Released>
  readonly found: Violation[]
}

const kinds = ['block', 'hold', 'pause']
/** An entry is stamped a moment after the function looked at the clock. */
const clockSlackMs = 5

export function checkFencing(file: Case): Violation[] {
  const walk: Walk = { standing: new Map(), released: new Map(), found: [] }
  for (const entry of file.entries) {
    const { verb, more } = entry
    if (kinds.includes(verb)) setFence(file, walk, entry)
    else if (verb === 'lift') walk.standing.delete(more.get('fence') ?? '')
    else if (entry.moves.length > 0) judge(file, walk, entry)
  }
  return walk.found
}

function setFence(file: Case, { standing }: Walk, entry: Entry): void {
  const field = `${entry.verb}:${entry.more.get('scope')}`
  standing.set(field, { field, kind: entry.verb, set: entry, until: untilOf(file, field, entry) })
}

/** The log does not tell until when; the reason does, or the operator's request. */
function untilOf(file: Case, field: string, entry: Entry): number | undefined {
  const reason = entry.more.get('reason') ?? ''
  const said = /"until"\s*:\s*(\d+)/.exec(reason)?.[1] ?? entry.more.get('until')
  if (said !== undefined) return Number(said)
  const sets = file.acts.filter((act) => act.act === 'set' && act.fence === field && act.type !== 'fail')
  const own = sets.filter(({ logId }) => logId === entry.id)
  const asked = (own.length > 0 ? own : sets.filter(({ logId }) => logId === undefined)).flatMap(
    ({ until }) => until ?? [],
  )
  return asked.length === 0 ? undefined : Math.min(...asked)
}

function judge(file: Case, walk: Walk, entry: Entry): void {
  for (const { id, from, to } of entry.moves) {
    const delivery = deliveryOf(id)
    if (entry.verb === 'release' && from === 'held') release(walk, entry, delivery)
    else if (isGated(from, to)) checkMove(file, walk, entry, delivery)
    else if (to === 'failed') checkFailed(file, walk, entry, delivery)
    if (to === 'held' || (from === 'idle' && to === 'executing')) walk.released.delete(delivery)
  }
}

/** First claims, begins and replays. */
function isGated(from: string, to: string): boolean {
  if (to === 'claimed') return from === 'queued'
  return to === 'executing' && (from === 'idle' || from === 'executing')
}

function release({ standing, released }: Walk, entry: Entry, delivery: string): void {
  const holds = [...standing.values()].filter(({ kind }) => kind === 'hold').map(({ field }) => field)
  released.set(delivery, { entry, holds: new Set(holds) })
}

function checkMove(file: Case, walk: Walk, entry: Entry, id: string): void {
  const delivery = file.deliveries.get(id)
  if (delivery === undefined) return
  const fence = fencesOver(file, walk, entry, delivery).find(
    (each) => stands(each, entry) && !passes(each, walk.released.get(id)),
  )
  if (fence === undefined) return
  const gated = entry.moves.filter((move) => deliveryOf(move.id) === id && isGated(move.from, move.to))
  const what = gated.map(({ id: subject, from, to }) => `${subject} ${from}>${to}`).join(', ')
  const text = `${what} while ${fence.field} stood`
  walk.found.push({ invariant: 'I3', id, text, evidence: [logged(fence.set), logged(entry, id)] })
}

/** What stands over a delivery when a node, the actor of the entry, comes to it. */
function fencesOver(file: Case, { standing }: Walk, entry: Entry, delivery: FinalDelivery): Fence[] {
  if (standing.size === 0) return []
  const [host = ''] = entry.actor.split('/')
  const conversation = file.messages.get(delivery.message)?.conversation ?? delivery.conversation
  const scopes = ['hub', `host:${host}`, `conversation:${conversation}`]
  if (delivery.session !== undefined) scopes.push(`session:${delivery.session}`)
  return scopes.flatMap((scope) => kinds.flatMap((kind) => standing.get(`${kind}:${scope}`) ?? []))
}

function stands({ until }: Fence, entry: Entry): boolean {
  return until === undefined || entry.ms + clockSlackMs < until
}

function passes({ field, kind, set }: Fence, released: Released | undefined): boolean {
  if (kind !== 'hold' || released === undefined || !released.holds.has(field)) return false
  return set.index < released.entry.index || set.ms <= released.entry.ms
}

const ownReasons = /^(expired|target_session_missing|cancelled|rejected|resolved)/

/** What a claim or a begin failed was blocked, or too late. */
function checkFailed(file: Case, walk: Walk, entry: Entry, id: string): void {
  const delivery = file.deliveries.get(id)
  if (delivery === undefined || !['claim', 'take', 'begin'].includes(entry.verb)) return
  if (delivery.session !== undefined || ownReasons.test(delivery.reason ?? '')) return
  if (fencesOver(file, walk, entry, delivery).some(({ kind }) => kind === 'block')) return
  const text = 'failed by a block that did not stand'
  walk.found.push({ invariant: 'I3', id, text, evidence: [logged(entry, id)], means: 'lost' })
}
