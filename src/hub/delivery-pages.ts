import { HoldfastError } from '../contract/errors.js'
import type { DeliveryFilter, DeliveryPage, LiveState } from '../contract/hub.js'
import { hostId } from '../contract/ids.js'
import type { DeliveryView } from '../contract/views.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { pageLimit, readSortedSet } from './sorted-sets.js'
import { readDeliveries } from './views.js'

const entriesAtOnce = 200

/** Hosts in order of name. */
export async function hostNames(reader: Reader, keys: Keys): Promise<string[]> {
  return (await reader.strings(['SMEMBERS', keys.hosts])).sort()
}

/**
 * One page of live deliveries: queued, claimed and mirrored ones by host in stream order, then delivered
 * ones by host, then the held queue, then those whose copy was in doubt. What stays where it is while the
 * pages are read is shown once.
 * @throws INVALID_ARGUMENT for a cursor that is none of ours
 */
export async function listDeliveries(
  reader: Reader,
  keys: Keys,
  filter: DeliveryFilter,
): Promise<DeliveryPage> {
  const limit = pageLimit(filter)
  const start = readCursor(filter.cursor)
  const found: DeliveryView[] = []
  for (const place of await placesFrom(reader, keys, filter, start)) {
    let position = samePlace(place, start) ? start.position : ''
    for (;;) {
      const page = await readPlace(reader, keys, place, position)
      const views = new Map((await readDeliveries(reader, keys, idsOf(page))).map((view) => [view.id, view]))
      for (const entry of page.entries) {
        position = entry.position
        const view = views.get(entry.id)
        if (view === undefined || !isWanted(view, place, filter)) continue
        found.push(view)
        if (found.length >= limit) {
          return { deliveries: found, cursor: `${place.source} ${place.host ?? '*'} ${position}` }
        }
      }
      if (page.end) break
    }
  }
  return { deliveries: found }
}

type Source = 'stream' | 'awaiting' | 'held' | 'unknown'

/** Where deliveries are listed: a host's stream or awaiting set, or one of the hub's own lists. */
interface Place {
  readonly source: Source
  readonly host: string | undefined
}

interface Cursor extends Place {
  readonly position: string
}

const sources: readonly Source[] = ['stream', 'awaiting', 'held', 'unknown']
const beginning: Cursor = { source: 'stream', host: '', position: '' }

/** The places that the filter wants, from the cursor's on; they are ordered by name, so new hosts move nothing. */
async function placesFrom(
  reader: Reader,
  keys: Keys,
  filter: DeliveryFilter,
  start: Cursor,
): Promise<Place[]> {
  const hosts = filter.host === undefined ? await hostNames(reader, keys) : [hostId(filter.host)]
  const places = sourcesOf(filter.state).flatMap((source): Place[] => {
    const perHost = source === 'stream' || source === 'awaiting'
    return perHost ? hosts.map((host) => ({ source, host })) : [{ source, host: undefined }]
  })
  return places.filter((place) => {
    const order = sources.indexOf(place.source) - sources.indexOf(start.source)
    return order > 0 || (order === 0 && (place.host ?? '') >= (start.host ?? ''))
  })
}

function samePlace(place: Place, cursor: Cursor): boolean {
  return place.source === cursor.source && place.host === cursor.host
}

function sourcesOf(state: LiveState | undefined): readonly Source[] {
  switch (state) {
    case undefined:
      return sources
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

function isWanted(view: DeliveryView, place: Place, filter: DeliveryFilter): boolean {
  const host = place.host ?? filter.host
  if (host !== undefined && view.host !== host) return false
  if (filter.state !== undefined) return view.state === filter.state
  if (place.source === 'stream') return streamStates.includes(view.state)
  return view.state === (place.source === 'awaiting' ? 'delivered' : place.source)
}

const cursorPattern =
  /^(stream|awaiting) ([a-z0-9._-]+) (\d+-\d+|\d+ [\d.-]+)$|^(held|unknown) \* (\d+ [\d./-]+)$/

function readCursor(cursor: string | undefined): Cursor {
  if (cursor === undefined) return beginning
  const found = cursorPattern.exec(cursor)
  if (found === null) {
    throw new HoldfastError('INVALID_ARGUMENT', `cursor ${JSON.stringify(cursor)} is none of ours`)
  }
  const [, perHost, host, position, own, ownPosition] = found
  return {
    source: (perHost ?? own) as Source,
    host,
    position: position ?? ownPosition ?? '',
  }
}

interface PlacePage {
  readonly entries: readonly { readonly id: string; readonly position: string }[]
  readonly end: boolean
}

function idsOf(page: PlacePage): string[] {
  return page.entries.map((entry) => entry.id)
}

async function readPlace(reader: Reader, keys: Keys, place: Place, after: string): Promise<PlacePage> {
  if (place.source === 'stream') {
    const from = after === '' ? '-' : `(${after}`
    const stream = keys.stream(place.host ?? '')
    const entries = entriesOf(await reader.one(['XRANGE', stream, from, '+', 'COUNT', entriesAtOnce]))
    return {
      entries: entries.map((entry) => ({ id: entry.delivery, position: entry.id })),
      end: entries.length < entriesAtOnce,
    }
  }
  const key = place.source === 'awaiting' ? keys.awaiting(place.host ?? '') : keys[place.source]
  const { members, end } = await readSortedSet(reader, key, after)
  return {
    entries: members.map(({ member, position }) => ({ id: member.split('/')[0] ?? member, position })),
    end,
  }
}

/** Stream entries with the delivery that each names. */
export function entriesOf(reply: unknown): { id: string; delivery: string }[] {
  if (!Array.isArray(reply)) return []
  return reply.map((entry: unknown) => {
    const [id, fields] = entry as [string, string[]]
    return { id, delivery: fields[1] ?? '' }
  })
}
