import { hostId, isHostId, isId } from '../contract/ids.js'
import type { DeliveryState } from '../contract/states.js'
import { group, type Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { present } from '../record/replies.js'
import { entriesOf, hostNames } from './delivery-pages.js'
import { readDeliveries } from './views.js'

export interface PendingEntry {
  readonly host: string
  readonly entry: string
  readonly consumer: string
  readonly idleMs: number
  readonly delivery?: string
  readonly state?: DeliveryState
  readonly epoch?: number
  readonly owner?: string
}

export interface UnknownEntry {
  /** The attempt, or the delivery where its copy was in doubt. */
  readonly id: string
  readonly sinceMs: number
  readonly reason: string
  readonly host: string
  readonly node?: string
  readonly begunAt?: number
}

export interface HeldEntry {
  readonly id: string
  readonly sinceMs: number
  readonly reason: string
  readonly host: string
  readonly conversation: string
  readonly attempts: number
}

export interface NodeView {
  readonly node: string
  /** `live` says that it has not left; how fresh it is, its heartbeat's age tells. */
  readonly state: 'live' | 'left'
  readonly incarnation: number
  readonly heartbeatAgeMs: number
}

export interface HostView {
  readonly host: string
  /** False for a host that is only queued for. */
  readonly joined: boolean
  readonly retiredAt?: number
  /** Queued, parked, claimed and mirrored. */
  readonly entries: number
  /** Delivered and not finished. */
  readonly awaiting: number
  readonly nodes: readonly NodeView[]
}

export interface FenceView {
  /** `<kind>:<scope>`, the hash field. */
  readonly fence: string
  /** False for a field that no rule reads. */
  readonly known: boolean
  readonly reason: string
  readonly actor?: string
  readonly at?: number
  readonly until?: number
}

const entriesAtOnce = 200
const fencePattern = /^(?:pause|hold|block):(?:hub|(host|conversation|session):(.+))$/

/** Every host that was ever sent to or joined, with its nodes and what waits for it. */
export async function listHosts(reader: Reader, keys: Keys): Promise<HostView[]> {
  const names = await hostNames(reader, keys)
  const rows = await reader.hashes(names.map((name) => keys.host(name)))
  const views: HostView[] = []
  for (const [at, host] of names.entries()) {
    views.push(await hostView(reader, keys, host, rows[at] ?? new Map()))
  }
  return views
}

async function hostView(
  reader: Reader,
  keys: Keys,
  host: string,
  row: ReadonlyMap<string, string>,
): Promise<HostView> {
  const ids = [...row.keys()]
    .filter((field) => field.startsWith('node:'))
    .map((field) => field.slice('node:'.length))
  const nodes = await reader.hashes(ids.map((id) => keys.node(host, id)))
  const [time, entries, awaiting] = (await reader.all([
    ['TIME'],
    ['XLEN', keys.stream(host)],
    ['ZCARD', keys.awaiting(host)],
  ])) as [[string, string], number, number]
  const nowMs = Number(time[0]) * 1000 + Math.floor(Number(time[1]) / 1000)
  const retiredAt = row.get('retired_at')
  return {
    host,
    joined: row.has('joined_at'),
    ...present('retiredAt', retiredAt === undefined ? undefined : Number(retiredAt)),
    entries,
    awaiting,
    nodes: ids.map((node, at) => ({
      node,
      state: nodes[at]?.get('state') === 'left' ? 'left' : 'live',
      incarnation: Number(nodes[at]?.get('incarnation') ?? 0),
      heartbeatAgeMs: Math.max(0, nowMs - Number(nodes[at]?.get('heartbeat_at') ?? 0)),
    })),
  }
}

/** The held queue, oldest first. */
export async function listHeld(reader: Reader, keys: Keys): Promise<HeldEntry[]> {
  const members = await reader.strings(['ZRANGE', keys.held, 0, -1, 'WITHSCORES'])
  const ids = members.filter((_, at) => at % 2 === 0)
  const views = await readDeliveries(reader, keys, ids)
  return views.map((view) => ({
    id: view.id,
    sinceMs: Number(members[2 * ids.indexOf(view.id) + 1]),
    reason: view.reason ?? '',
    host: view.host,
    conversation: view.conversation,
    attempts: view.attempts.length,
  }))
}

/** The pending lists as Redis has them, each entry beside its row. */
export async function listPending(reader: Reader, keys: Keys, host?: string): Promise<PendingEntry[]> {
  const hosts = host === undefined ? await hostNames(reader, keys) : [hostId(host)]
  const found: PendingEntry[] = []
  for (const each of hosts) found.push(...(await pendingOf(reader, keys, each)))
  return found
}

async function pendingOf(reader: Reader, keys: Keys, host: string): Promise<PendingEntry[]> {
  const stream = keys.stream(host)
  const found: PendingEntry[] = []
  if (!(await hasGroup(reader, stream))) return found
  for (let from = '-'; ; ) {
    const rows = (await reader.one(['XPENDING', stream, group, from, '+', entriesAtOnce])) as [
      string,
      string,
      number,
      number,
    ][]
    const entries = await reader.all(rows.map(([entry]) => ['XRANGE', stream, entry, entry]))
    const ids = entries.map((entry) => entriesOf(entry)[0]?.delivery)
    const views = await readDeliveries(
      reader,
      keys,
      ids.filter((id) => id !== undefined),
    )
    for (const [index, [entry, consumer, idleMs]] of rows.entries()) {
      const view = views.find((each) => each.id === ids[index])
      found.push({
        host,
        entry,
        consumer,
        idleMs,
        ...present('delivery', ids[index]),
        ...(view === undefined
          ? {}
          : { state: view.state, epoch: view.epoch, ...present('owner', view.owner) }),
      })
    }
    const last = rows.at(-1)
    if (rows.length < entriesAtOnce || last === undefined) return found
    from = `(${last[0]}`
  }
}

async function hasGroup(reader: Reader, stream: string): Promise<boolean> {
  if ((await reader.one(['EXISTS', stream])) !== 1) return false
  const groups = (await reader.one(['XINFO', 'GROUPS', stream])) as string[][]
  return groups.some((fields) => fields[1] === group)
}

/** The unknown list, oldest first. */
export async function listUnknown(reader: Reader, keys: Keys): Promise<UnknownEntry[]> {
  const members = await reader.strings(['ZRANGE', keys.unknown, 0, -1, 'WITHSCORES'])
  const listed = Array.from({ length: members.length / 2 }, (_, at) => ({
    id: members[2 * at] ?? '',
    sinceMs: Number(members[2 * at + 1]),
  }))
  const deliveries = await readDeliveries(reader, keys, [
    ...new Set(listed.map((entry) => entry.id.split('/')[0] ?? '')),
  ])
  return listed.map(({ id, sinceMs }) => {
    const delivery = deliveries.find((each) => each.id === id.split('/')[0])
    const attempt = delivery?.attempts.find((each) => each.id === id)
    return {
      id,
      sinceMs,
      reason: attempt?.unknownReason ?? delivery?.reason ?? 'the row is missing',
      host: delivery?.host ?? '',
      ...present('node', attempt?.node),
      ...present('begunAt', attempt?.begunAt),
    }
  })
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
