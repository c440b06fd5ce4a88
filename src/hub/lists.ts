import { HoldfastError } from '../contract/errors.js'
import { hostId } from '../contract/ids.js'
import type { DeliveryState } from '../contract/states.js'
import { group, type Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { present } from '../record/replies.js'
import { type DeliveryView, readDeliveries } from './views.js'

/** The states in which a delivery is in a list of its own; finished ones are found through their message. */
export type LiveState = Exclude<DeliveryState, 'failed'>

export interface DeliveryFilter {
  readonly host?: string | undefined
  readonly state?: LiveState | undefined
  /** From the previous page. */
  readonly cursor?: string | undefined
  /** At most this many, 1 to 1000; 100 when absent. */
  readonly limit?: number | undefined
}

export interface DeliveryPage {
  readonly deliveries: readonly DeliveryView[]
  /** Absent at the end. */
  readonly cursor?: string
}

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
const knownFence = /^(pause|hold|block):(hub|host:[a-z0-9._-]+|(conversation|session):[\x20-\x7e]+)$/

/** Hosts in order of name. */
export async function listHosts(reader: Reader, keys: Keys): Promise<string[]> {
  return (await reader.strings(['SMEMBERS', keys.hosts])).sort()
}

/**
 * One page of live deliveries: by host, then by state (queued, claimed and mirrored in stream order, then
 * delivered, held, unknown).
 */
export async function listDeliveries(
  reader: Reader,
  keys: Keys,
  filter: DeliveryFilter,
): Promise<DeliveryPage> {
  const limit = Math.min(Math.max(filter.limit ?? 100, 1), 1000)
  const hosts = filter.host === undefined ? await listHosts(reader, keys) : [hostId(filter.host)]
  const places = hosts.flatMap((host) => sourcesOf(filter.state).map((source) => ({ host, source })))
  let { place, after } = readCursor(filter.cursor)
  const found: DeliveryView[] = []
  for (; place < places.length; place += 1, after = '') {
    const at = places[place]
    if (at === undefined) break
    for (;;) {
      const page = await readSource(reader, keys, at.source, at.host, after)
      const views = await readDeliveries(reader, keys, page.ids)
      for (const [index, id] of page.ids.entries()) {
        const view = views.find((each) => each.id === id)
        after = page.positions[index] ?? after
        if (view === undefined || view.host !== at.host || !belongs(view, at.source, filter.state)) continue
        found.push(view)
        if (found.length >= limit) return { deliveries: found, cursor: `${place} ${after}` }
      }
      if (page.end) break
    }
  }
  return { deliveries: found }
}

type Source = 'stream' | 'awaiting' | 'held' | 'unknown'

function sourcesOf(state: LiveState | undefined): Source[] {
  switch (state) {
    case undefined:
      return ['stream', 'awaiting', 'held', 'unknown']
    case 'queued':
    case 'claimed':
    case 'mirrored':
      return ['stream']
    case 'delivered':
      return ['awaiting']
    default:
      return [state]
  }
}

const streamStates: readonly string[] = ['queued', 'claimed', 'mirrored']

function belongs(view: DeliveryView, source: Source, state: LiveState | undefined): boolean {
  if (state !== undefined) return view.state === state
  if (source === 'stream') return streamStates.includes(view.state)
  return view.state === (source === 'awaiting' ? 'delivered' : source)
}

function readCursor(cursor: string | undefined): { place: number; after: string } {
  if (cursor === undefined) return { place: 0, after: '' }
  const found = /^(\d+) ([\w.:/-]*)$/.exec(cursor)
  if (found === null) {
    throw new HoldfastError('INVALID_ARGUMENT', `cursor ${JSON.stringify(cursor)} is none of ours`)
  }
  return { place: Number(found[1]), after: found[2] ?? '' }
}

interface SourcePage {
  readonly ids: string[]
  readonly positions: string[]
  readonly end: boolean
}

async function readSource(
  reader: Reader,
  keys: Keys,
  source: Source,
  host: string,
  after: string,
): Promise<SourcePage> {
  if (source === 'stream') {
    const from = after === '' ? '-' : `(${after}`
    const reply = await reader.one(['XRANGE', keys.stream(host), from, '+', 'COUNT', entriesAtOnce])
    const entries = entriesOf(reply)
    return {
      ids: entries.map((entry) => entry.delivery),
      positions: entries.map((entry) => entry.id),
      end: entries.length < entriesAtOnce,
    }
  }
  const key = source === 'awaiting' ? keys.awaiting(host) : keys[source]
  const first = after === '' ? 0 : Number(after)
  const members = await reader.strings(['ZRANGE', key, first, first + entriesAtOnce - 1])
  return {
    ids: members.map((member) => member.split('/')[0] ?? member),
    positions: members.map((_, index) => String(first + index + 1)),
    end: members.length < entriesAtOnce,
  }
}

function entriesOf(reply: unknown): { id: string; delivery: string }[] {
  if (!Array.isArray(reply)) return []
  return reply.map((entry: unknown) => {
    const [id, fields] = entry as [string, string[]]
    return { id, delivery: fields[1] ?? '' }
  })
}

/** The pending lists as Redis has them, each entry beside its row. */
export async function listPending(reader: Reader, keys: Keys, host?: string): Promise<PendingEntry[]> {
  const hosts = host === undefined ? await listHosts(reader, keys) : [hostId(host)]
  const found: PendingEntry[] = []
  for (const each of hosts) found.push(...(await pendingOf(reader, keys, each)))
  return found
}

async function pendingOf(reader: Reader, keys: Keys, host: string): Promise<PendingEntry[]> {
  const stream = keys.stream(host)
  const found: PendingEntry[] = []
  if ((await reader.one(['EXISTS', stream])) !== 1) return found
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
    .map(([fence, text]) => ({ fence, known: knownFence.test(fence), ...fenceText(text) }))
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
