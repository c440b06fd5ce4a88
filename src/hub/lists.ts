import type { HeldEntry, UnknownEntry } from '../contract/delivery-views.js'
import type { EffectView } from '../contract/effect-views.js'
import type { FenceView, HostView, NodeView, PendingEntry } from '../contract/host-views.js'
import type { HostConcern, HostPageOptions, Page, PageOptions } from '../contract/hub.js'
import { hostId, isHostId, isId } from '../contract/ids.js'
import type { Keys } from '../record/keys.js'
import { type Reader, timeOf } from '../record/reader.js'
import { present } from '../record/replies.js'
import { hostNames } from './delivery-places.js'
import { readEffects } from './effects.js'
import { nodesByHeartbeat } from './nodes.js'
import { pendingEntries } from './pending.js'
import { notOurs, pageLimit, sortedSetPage } from './sorted-sets.js'
import { readDeliveries } from './views.js'

const fencePattern = /^(?:pause|hold|block):(?:hub|(host|conversation|session):(.+))$/

/** Hosts that were ever sent to or joined, by name, with their nodes and what waits for them. */
export async function listHosts(
  reader: Reader,
  keys: Keys,
  { only, ...page }: HostPageOptions = {},
): Promise<Page<HostView>> {
  const after = page.cursor === undefined ? '' : hostId(page.cursor)
  const later = (await namesOf(reader, keys, only)).filter((name) => name > after)
  const names = later.slice(0, pageLimit(page))
  const rows = await reader.hashes(names.map((name) => keys.host(name)))
  const entries = await hostViews(
    reader,
    keys,
    names.map((host, at) => ({ host, row: rows[at] ?? new Map() })),
  )
  return { entries, ...present('cursor', names.length < later.length ? names.at(-1) : undefined) }
}

async function namesOf(reader: Reader, keys: Keys, only: HostConcern | undefined): Promise<string[]> {
  if (only === undefined) return hostNames(reader, keys)
  if (only === 'stranded') return (await reader.strings(['ZRANGE', keys.stranded, 0, -1])).sort()
  const { silent } = await nodesByHeartbeat(reader, keys, timeOf(await reader.one(['TIME'])))
  return [...new Set(silent.map(({ host }) => host))].sort()
}

/** One host; undefined where none of this name was ever seen. */
export async function readHost(reader: Reader, keys: Keys, name: string): Promise<HostView | undefined> {
  const row = await reader.hash(keys.host(hostId(name)))
  return row.size === 0 ? undefined : (await hostViews(reader, keys, [{ host: name, row }]))[0]
}

interface HostRow {
  readonly host: string
  readonly row: ReadonlyMap<string, string>
}

/** What waits for all of them is asked in one write, their nodes in a few. */
async function hostViews(reader: Reader, keys: Keys, hosts: readonly HostRow[]): Promise<HostView[]> {
  const [time, ...sizes] = await reader.all([
    ['TIME'],
    ...hosts.flatMap(({ host }) => [
      ['XLEN', keys.stream(host)],
      ['ZCARD', keys.awaiting(host)],
    ]),
  ])
  const nowMs = timeOf(time)
  const named = hosts.flatMap(({ host, row }) => nodesIn(row).map((node) => ({ host, node })))
  const rows = await reader.hashes(named.map(({ host, node }) => keys.node(host, node)))
  const nodes = new Map<string, NodeView[]>()
  for (const [at, { host, node }] of named.entries()) {
    nodes.set(host, [...(nodes.get(host) ?? []), nodeView(node, rows[at] ?? new Map(), nowMs)])
  }
  return hosts.map(({ host, row }, at) => {
    const retiredAt = row.get('retired_at')
    return {
      host,
      joined: row.has('joined_at'),
      ...present('retiredAt', retiredAt === undefined ? undefined : Number(retiredAt)),
      entries: Number(sizes[2 * at]),
      awaiting: Number(sizes[2 * at + 1]),
      nodes: nodes.get(host) ?? [],
    }
  })
}

function nodesIn(row: ReadonlyMap<string, string>): string[] {
  return [...row.keys()]
    .filter((field) => field.startsWith('node:'))
    .map((field) => field.slice('node:'.length))
}

function nodeView(node: string, row: ReadonlyMap<string, string>, nowMs: number): NodeView {
  const figure = (field: string) => (row.has(field) ? Number(row.get(field)) : undefined)
  const progressAt = figure('progress_at')
  return {
    node,
    state: row.get('state') === 'left' ? 'left' : 'live',
    incarnation: figure('incarnation') ?? 0,
    heartbeatAgeMs: Math.max(0, nowMs - (figure('heartbeat_at') ?? 0)),
    ...present('progressAgeMs', progressAt === undefined ? undefined : Math.max(0, nowMs - progressAt)),
    ...present('blockingMs', figure('blocking_ms')),
    ...present('blockingLongestMs', figure('blocking_longest_ms')),
    ...present('mirrorCommits', figure('mirror_commits')),
    ...present('mirrorMs', figure('mirror_ms')),
    ...present('mirrorLongestMs', figure('mirror_longest_ms')),
  }
}

/** The held queue, oldest first. */
export async function listHeld(reader: Reader, keys: Keys, page: PageOptions = {}): Promise<Page<HeldEntry>> {
  const { members, cursor } = await sortedSetPage(reader, keys.held, page)
  const since = new Map(members.map(({ member, score }) => [member, score]))
  const views = await readDeliveries(reader, keys, [...since.keys()])
  const entries = views.map((view) => ({
    id: view.id,
    sinceMs: since.get(view.id) ?? 0,
    reason: view.reason ?? '',
    host: view.host,
    conversation: view.conversation,
    attempts: view.attempts.length,
  }))
  return { entries, ...present('cursor', cursor) }
}

const entryCursor = /^\d+-\d+$/

/** The pending list of a host as Redis has it, each entry beside its row. */
export async function listPending(
  reader: Reader,
  keys: Keys,
  host: string,
  page: PageOptions = {},
): Promise<Page<PendingEntry>> {
  const stream = keys.stream(hostId(host))
  const { cursor: after } = page
  if (after !== undefined && !entryCursor.test(after)) throw notOurs(after)
  const limit = pageLimit(page)
  const rows = await pendingEntries(reader, stream, after ?? '', limit)
  const known = rows.flatMap(({ delivery }) => (delivery === undefined ? [] : [delivery]))
  const views = new Map((await readDeliveries(reader, keys, known)).map((view) => [view.id, view]))
  const entries = rows.map(({ entry, consumer, idleMs, delivery }): PendingEntry => {
    const view = views.get(delivery ?? '')
    return {
      host,
      entry,
      consumer,
      idleMs,
      ...present('delivery', delivery),
      ...(view === undefined
        ? {}
        : { state: view.state, epoch: view.epoch, ...present('owner', view.owner) }),
    }
  })
  return { entries, ...present('cursor', rows.length < limit ? undefined : rows.at(-1)?.entry) }
}

/** The unknown list, oldest first. */
export async function listUnknown(
  reader: Reader,
  keys: Keys,
  page: PageOptions = {},
): Promise<Page<UnknownEntry>> {
  const { members, cursor } = await sortedSetPage(reader, keys.unknown, page)
  const deliveryOf = (id: string) => id.split('/')[0] ?? ''
  const effects = new Map(
    (
      await readEffects(
        reader,
        keys,
        members.flatMap(({ member }) => effectOf(member) ?? []),
      )
    ).map((view) => [view.id, view]),
  )
  const own = members.filter(({ member }) => effectOf(member) === undefined)
  const ids = [...new Set(own.map(({ member }) => deliveryOf(member)))]
  const deliveries = new Map((await readDeliveries(reader, keys, ids)).map((view) => [view.id, view]))
  const entries = members.map(({ member, score }): UnknownEntry => {
    const effect = effectOf(member)
    if (effect !== undefined) return unknownEffect(member, score, effects.get(effect))
    const delivery = deliveries.get(deliveryOf(member))
    const attempt = delivery?.attempts.find((each) => each.id === member)
    return {
      id: member,
      sinceMs: score,
      reason: attempt?.unknownReason ?? delivery?.reason ?? 'the row is missing',
      host: delivery?.host ?? '',
      ...present('node', attempt?.node),
      ...present('begunAt', attempt?.begunAt),
    }
  })
  return { entries, ...present('cursor', cursor) }
}

/** The effect that a member of the unknown list names: `effect:<id>`. */
function effectOf(member: string): string | undefined {
  return member.startsWith('effect:') ? member.slice('effect:'.length) : undefined
}

function unknownEffect(id: string, sinceMs: number, view: EffectView | undefined): UnknownEntry {
  return {
    id,
    sinceMs,
    reason: view?.unknownReason ?? 'the row is missing',
    host: '',
    ...present('node', view?.executor),
    ...present('begunAt', view?.startedAt),
  }
}

/** Every field of the fences hash: any text is a reason, and a field that no rule reads is shown as such. */
export async function listFences(reader: Reader, keys: Keys): Promise<FenceView[]> {
  const fields = await reader.hash(keys.fences)
  return [...fields]
    .sort()
    .map(([fence, text]) => ({ fence, known: isKnownFence(fence), ...fenceText(text) }))
}

function isKnownFence(field: string): boolean {
  const found = fencePattern.exec(field)
  if (found === null) return false
  const [, dimension, name] = found
  return name === undefined || (dimension === 'host' ? isHostId(name) : isId(name))
}

/** What the text of a fence says: JSON by the functions, anything else is a reason by itself. */
export function fenceText(text: string): { reason: string; actor?: string; at?: number; until?: number } {
  if (!text.startsWith('{')) return { reason: text }
  try {
    const value = JSON.parse(text) as Record<string, unknown>
    return {
      reason: String(value['reason'] ?? ''),
      ...present('actor', value['actor'] === undefined ? undefined : String(value['actor'])),
      ...present('at', value['at'] === undefined ? undefined : Number(value['at'])),
      ...present('until', value['until'] === undefined ? undefined : Number(value['until'])),
    }
  } catch {
    return { reason: text }
  }
}

/** Deliveries by state and attempts by outcome, as counted. */
export async function readCounts(reader: Reader, keys: Keys): Promise<Record<string, number>> {
  const fields = await reader.hash(keys.counts)
  return Object.fromEntries([...fields].map(([name, value]) => [name, Number(value)]))
}

/** One of them; in a damaged record too it is a whole number from 0. */
export function countOf(counts: Readonly<Record<string, number>>, name: string): number {
  return Math.max(0, Math.trunc(counts[name] ?? 0) || 0)
}
