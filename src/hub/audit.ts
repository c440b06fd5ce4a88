import { type EffectStatus, effectStatuses } from '../contract/effects.js'
import type { ProblemCode } from '../contract/problem-codes.js'
import type { AuditView } from '../contract/upkeep-views.js'
import { unescapePart } from '../record/keys.js'
import type { Problem, ReconciledDelivery, Tally } from '../record/sweep-functions.js'
import type { HubParts } from './parts.js'
import { reconcileRows, refillLanes } from './reconcile.js'
import { piecesOf, scanKeys } from './scan.js'
import { disagreementsOf } from './tally.js'

export interface AuditOptions {
  readonly repair: boolean
  readonly signal?: AbortSignal | undefined
  /** Told how many rows were looked at, of about how many: once by their deliveries, once by their messages. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined
}

const toldAtMost = 1000
const idsACall = 50
const states = ['queued', 'claimed', 'mirrored', 'delivered', 'held', 'failed', 'unknown'] as const

/** What a walk over all rows counts. */
type Counted = Record<(typeof states)[number] | 'finished' | 'done' | 'terminal' | 'recipients', number> &
  Record<`effects_${EffectStatus}`, number>

/**
 * Compares everything with everything, in slices: types of keys, every row with every index, the indexes with the
 * rows, messages with their deliveries, and the totals. With `repair` the indexes and counts are put right as the
 * rows say; rows are never changed.
 */
export async function auditRecord(parts: HubParts, options: AuditOptions): Promise<AuditView> {
  const { functions, keys } = parts
  const told: AuditView['disagreements'][number][] = []
  const tell: Tell = (about, { code, what, repaired }, look) => {
    told.push({ code, about, what, repaired, look })
  }
  const before = await functions.tally()
  const rowsAtFirst = states.reduce((sum, state) => sum + before[state], 0)
  const tellProgress = (looked: number) => options.onProgress?.(looked, 2 * rowsAtFirst)
  for (const each of (await functions.reconcileLists('types', options)).found)
    tell(each.about, each, typeOf(each.about))
  for (const list of ['held', 'unknown'] as const) {
    let cursor = ''
    do {
      const slice = await functions.reconcileLists(list, options, [cursor])
      for (const each of slice.found) tell(each.about, each, sortedSet(keys[list]))
      cursor = slice.cursor
    } while (cursor !== '')
  }
  const counted = noneCounted()
  let deliveries = 0
  const parked: string[] = []
  const onRow = (row: ReconciledDelivery) => {
    deliveries += 1
    if (row.parked) parked.push(row.id)
    countRow(counted, row)
    if (deliveries % idsACall === 0) tellProgress(deliveries)
  }
  const { rows } = await reconcileRows(parts, { ...options, onRow })
  await auditLanes(parts, options, parked, tell)
  for (const { id, problems } of rows) for (const each of problems) tell(id, each, hash(keys.delivery(id)))
  const onMessages = () => tellProgress(deliveries + Math.min(counted.recipients, deliveries))
  const messages = await auditMessages(parts, options, counted, tell, onMessages)
  await auditRows(parts, options, counted, tell)
  await auditSetAside(parts, tell)
  await auditTotals(parts, options, { logId: before.logId, counted }, tell)
  const tally = await functions.tally()
  return {
    conservation: {
      recipients: tally.recipients,
      byState: Object.fromEntries(states.map((state) => [state, tally[state]])),
      owed: tally.owed,
      pruned: tally.pruned,
    },
    deliveries,
    messages,
    disagreements: told.slice(0, toldAtMost),
    more: told.length > toldAtMost,
  }
}

/** What a walk counted, and the last log entry when it began. */
interface Count {
  readonly logId: string
  readonly counted: Counted
}

/** `look` is a line for redis-cli that shows it. */
type Tell = (about: string, problem: Problem, look: string) => void

function noneCounted(): Counted {
  return {
    queued: 0,
    claimed: 0,
    mirrored: 0,
    delivered: 0,
    held: 0,
    failed: 0,
    unknown: 0,
    finished: 0,
    done: 0,
    terminal: 0,
    recipients: 0,
    effects_executing: 0,
    effects_done: 0,
    effects_terminal: 0,
    effects_free: 0,
  }
}

function countRow(counted: Counted, { state, settled }: ReconciledDelivery): void {
  const known = states.find((each) => each === state)
  if (known === undefined) return
  counted[known] += 1
  if (settled !== 'done' && settled !== 'terminal') return
  counted.finished += 1
  counted[settled] += 1
}

/**
 * Parked deliveries against what the lanes list. Where lanes list fewer than there were, each is looked at in one
 * step with its lane, for others may have gone on meanwhile; what is missing is filled in again.
 */
async function auditLanes(
  parts: HubParts,
  { repair, signal }: AuditOptions,
  parked: readonly string[],
  tell: Tell,
): Promise<void> {
  const { functions, reader, keys } = parts
  let listed = 0
  for await (const names of scanKeys(reader, `${keys.tag}:lane:`)) {
    const lengths = await reader.all(names.map((name) => ['LLEN', name])).catch(() => [])
    for (const each of lengths) listed += Number(each ?? 0)
  }
  if (listed >= parked.length || signal?.aborted) return
  const missing: string[] = []
  for (const piece of piecesOf(parked, idsACall)) {
    for (const { id, problems } of await functions.reconcile(piece, { repair: false, lanes: true })) {
      if (problems.some(({ code }) => isOfLanes(code))) missing.push(id)
    }
  }
  if (missing.length === 0) return
  const refilled = repair ? await refillLanes(parts, signal) : undefined
  const what = `${missing.length} parked deliveries that their lanes do not list, ${missing[0]} among them`
  const repaired = refilled !== undefined && refilled.lanes > 0
  tell('lanes', { code: 'lane_unlisted', what, repaired }, plainSet(keys.parkedHosts))
}

function isOfLanes(code: ProblemCode): boolean {
  return code === 'lane_unlisted' || code === 'lane_unparked'
}

async function auditMessages(
  { functions, reader, keys }: HubParts,
  options: AuditOptions,
  counted: Counted,
  tell: Tell,
  onPiece: () => void = () => undefined,
): Promise<number> {
  const prefix = keys.message('')
  const relist: string[] = []
  let messages = 0
  for await (const names of scanKeys(reader, prefix)) {
    if (options.signal?.aborted) break
    const ids = names.map((name) => name.slice(prefix.length)).filter((id) => /^\d+-\d+$/.test(id))
    messages += ids.length
    for (const piece of piecesOf(ids, idsACall)) {
      const sizes = await sizesOf({ reader, keys }, piece)
      for (const { recipients } of sizes) counted.recipients += recipients
      onPiece()
      for (const batch of batchesOf(sizes)) {
        for (const { id, problems } of await functions.reconcileMessages(batch, options)) {
          if (problems.some(isRelistable)) relist.push(id)
          for (const each of problems) {
            if (!options.repair || !isRelistable(each)) tell(id, each, hash(keys.message(id)))
          }
        }
      }
    }
  }
  if (!options.repair) return messages
  // Only when all have been looked at: the first to be listed anew would hide the others.
  for (const batch of piecesOf(relist, idsACall)) {
    for (const { id, problems } of await functions.reconcileMessages(batch, { repair: true, relist: true })) {
      for (const each of problems) tell(id, each, hash(keys.message(id)))
    }
  }
  return messages
}

function isRelistable({ code }: Problem): boolean {
  return code === 'retention_list_missing'
}

interface Size {
  readonly id: string
  /** Of a message that retention is taking away, those that are left. */
  readonly recipients: number
}

async function sizesOf(
  { reader, keys }: Pick<HubParts, 'reader' | 'keys'>,
  ids: readonly string[],
): Promise<Size[]> {
  const commands = ids.map((id) => ['HMGET', keys.message(id), 'recipients', 'made', 'pruned_from'])
  const rows = (await reader.all(commands).catch(() => [])) as (string | null)[][]
  return ids.map((id, at) => {
    const [recipients, made, pruning] = rows[at] ?? []
    return { id, recipients: Number((pruning ? made : recipients) ?? 0) }
  })
}

const deliveriesACall = 1000

/** Messages by so many deliveries that one call stays short; a larger message goes alone. */
function* batchesOf(sizes: readonly Size[]): Generator<string[]> {
  let batch: string[] = []
  let deliveries = 0
  for (const { id, recipients } of sizes) {
    if (batch.length > 0 && deliveries + recipients > deliveriesACall) {
      yield batch
      batch = []
      deliveries = 0
    }
    batch.push(id)
    deliveries += recipients
  }
  if (batch.length > 0) yield batch
}

/** Effects, sessions and nodes. */
async function auditRows(
  { functions, reader, keys }: HubParts,
  options: AuditOptions,
  counted: Counted,
  tell: Tell,
): Promise<void> {
  const nodes = `${keys.tag}:node:`
  const kinds = [
    { what: 'effects', prefix: keys.effect('') },
    { what: 'sessions', prefix: keys.session('') },
    { what: 'nodes', prefix: nodes },
  ] as const
  /** The row that is meant by `effect <id>`, `session <id>`, `node <host>/<node>`, or by its key itself. */
  const keyOf = (about: string) => {
    const [, kind, id = ''] = /^(effect|session|node) (.*)$/.exec(about) ?? []
    if (kind === undefined) return about
    return kind === 'node' ? `${nodes}${id}` : keys[kind === 'effect' ? 'effect' : 'session'](id)
  }
  for (const { what, prefix } of kinds) {
    for await (const names of scanKeys(reader, prefix)) {
      if (options.signal?.aborted) return
      const parts = names.map((name) => name.slice(prefix.length))
      const ids = what === 'nodes' ? parts : parts.map(unescapePart)
      if (what === 'effects') await countEffects({ reader }, names, counted)
      for (const piece of piecesOf(ids, idsACall)) {
        for (const each of (await functions.reconcileLists(what, options, piece)).found) {
          tell(each.about, each, hash(keyOf(each.about)))
        }
      }
    }
  }
}

async function countEffects(
  { reader }: Pick<HubParts, 'reader'>,
  names: readonly string[],
  counted: Counted,
): Promise<void> {
  const found = await reader.all(names.map((name) => ['HGET', name, 'status'])).catch(() => [])
  for (const status of effectStatuses) {
    counted[`effects_${status}`] += found.filter((each) => each === status).length
  }
}

/** Keys of wrong types that were moved out of the way: somebody put them there. */
async function auditSetAside({ reader, keys }: HubParts, tell: Tell): Promise<void> {
  for await (const names of scanKeys(reader, `${keys.tag}:damaged:`)) {
    for (const name of names) {
      const what = 'a key of a wrong type, set aside: look at it, then delete it'
      tell(name, { code: 'set_aside', what, repaired: false }, typeOf(name))
    }
  }
}

/**
 * The totals of one moment. What the rows really are is known only where nothing moved while they were counted; then
 * the counts are set to it. Where something did, they are counted once more; the next audit tries again.
 */
async function auditTotals(
  parts: HubParts,
  { repair, signal }: AuditOptions,
  first: Count,
  tell: Tell,
): Promise<void> {
  const { functions, keys } = parts
  const now = await functions.tally()
  let count = first
  let quiet = first.logId === now.logId
  const wrong = disagreementsOf(now)
  if (repair && !quiet && wrong.length > 0 && signal?.aborted !== true) {
    count = await countRows(parts, signal)
    quiet = true
  }
  const drifted = quiet ? driftOf(now, count.counted) : []
  if (wrong.length === 0 && drifted.length === 0) return
  const { recipients } = count.counted
  const set = { ...count.counted, recipients: recipients + now.pruned }
  const repaired = repair && quiet && signal?.aborted !== true && (await functions.recount(count.logId, set))
  for (const { about, what } of wrong)
    tell(about, { code: 'totals_disagree', what, repaired }, hash(keys.counts))
  for (const what of drifted) tell('counts', { code: 'counts_drifted', what, repaired }, hash(keys.counts))
}

/** Counts all rows, and nothing else. */
async function countRows(parts: HubParts, signal: AbortSignal | undefined): Promise<Count> {
  const { logId } = await parts.functions.tally()
  const counted = noneCounted()
  await reconcileRows(parts, { repair: false, signal, onRow: (row) => countRow(counted, row) })
  await auditMessages(parts, { repair: false, signal }, counted, () => undefined)
  await auditRows(parts, { repair: false, signal }, counted, () => undefined)
  return { logId, counted }
}

function driftOf(tally: Tally, counted: Counted): string[] {
  return [...states, 'finished' as const]
    .filter((name) => tally[name] !== counted[name])
    .map((name) => `${name}: ${tally[name]} by the counts, ${counted[name]} rows`)
}

// Lines for redis-cli that show a key.
const hash = (key: string) => `redis-cli HGETALL ${quoted(key)}`
const plainSet = (key: string) => `redis-cli SMEMBERS ${quoted(key)}`
const sortedSet = (key: string) => `redis-cli ZRANGE ${quoted(key)} 0 -1 WITHSCORES`
const typeOf = (key: string) => `redis-cli TYPE ${quoted(key)}`

function quoted(key: string): string {
  return `'${key.replaceAll("'", `'\\''`)}'`
}
