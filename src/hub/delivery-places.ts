import { HoldfastError } from '../contract/errors.js'
import type { DeliveryFilter, LiveState } from '../contract/hub.js'
import { hostId } from '../contract/ids.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { pendingEntries } from './pending.js'
import { readSortedSet } from './sorted-sets.js'

/** Where deliveries are listed: of a host its stream, the pending list of it, or what it awaits; or a list of the hub. */
export interface Place {
  readonly source: Source
  /** Absent for the lists of the hub. */
  readonly host: string | undefined
}

type Source = 'stream' | 'pending' | 'awaiting' | 'held' | 'unknown'

/** A place, and how far it was read: empty at its beginning. */
export interface Position extends Place {
  readonly position: string
}

/** Rows of a place after a position. */
export interface PlacePage {
  readonly entries: readonly { readonly id: string; readonly position: string }[]
  readonly end: boolean
}

const sources: readonly Source[] = ['stream', 'pending', 'awaiting', 'held', 'unknown']
const beginning: Position = { source: 'stream', host: '', position: '' }
const rowsAtOnce = 200

/** Hosts in order of name. */
export async function hostNames(reader: Reader, keys: Keys): Promise<string[]> {
  return (await reader.strings(['SMEMBERS', keys.hosts])).sort()
}

/** The places that the filter wants, from the position's on; they are ordered by name, so new hosts move nothing. */
export async function placesFrom(
  reader: Reader,
  keys: Keys,
  filter: DeliveryFilter,
  start: Position,
): Promise<Place[]> {
  const wanted = sourcesOf(filter.state)
  const isPerHost = wanted.some((source) => source !== 'held' && source !== 'unknown')
  const hosts =
    filter.host === undefined ? (isPerHost ? await hostNames(reader, keys) : []) : [hostId(filter.host)]
  const places = wanted.flatMap((source): Place[] => {
    const isOfHub = source === 'held' || source === 'unknown'
    return isOfHub ? [{ source, host: undefined }] : hosts.map((host) => ({ source, host }))
  })
  return places.filter((place) => {
    const order = sources.indexOf(place.source) - sources.indexOf(start.source)
    return order > 0 || (order === 0 && (place.host ?? '') >= (start.host ?? ''))
  })
}

export function isSamePlace(place: Place, other: Place): boolean {
  return place.source === other.source && place.host === other.host
}

function sourcesOf(state: LiveState | undefined): readonly Source[] {
  switch (state) {
    case undefined:
      return ['stream', 'awaiting', 'held', 'unknown']
    case 'queued':
      return ['stream']
    case 'claimed':
    case 'mirrored':
      return ['pending']
    case 'delivered':
      return ['awaiting']
    default:
      return [state]
  }
}

/** Those places where there is something, asked in one write. */
export async function filledOf(
  reader: Reader,
  keys: Keys,
  places: readonly Place[],
): Promise<ReadonlySet<Place>> {
  const sizes = await reader.all(
    places.map((place) =>
      place.source === 'stream' || place.source === 'pending'
        ? ['XLEN', keys.stream(place.host ?? '')]
        : ['ZCARD', keyOf(keys, place)],
    ),
  )
  return new Set(places.filter((_, at) => Number(sizes[at]) > 0))
}

const cursorPattern =
  /^(stream|pending|awaiting) ([a-z0-9._-]+) (-|\d+-\d+|[\d.]+ [\d./-]+)$|^(held|unknown) \* (-|[\d.]+ [\x20-\x7e]+)$/

/** @throws INVALID_ARGUMENT for a cursor that is none of ours */
export function positionOf(cursor: string | undefined): Position {
  if (cursor === undefined) return beginning
  const found = cursorPattern.exec(cursor)
  if (found === null) {
    throw new HoldfastError('INVALID_ARGUMENT', `cursor ${JSON.stringify(cursor)} is none of ours`)
  }
  const [, perHost, host, ofHost, own, ofOwn] = found
  const position = ofHost ?? ofOwn ?? ''
  return { source: (perHost ?? own) as Source, host, position: position === '-' ? '' : position }
}

/** A place and how far it was read, for the next page. */
export function cursorOf({ source, host }: Place, position: string): string {
  return `${source} ${host ?? '*'} ${position === '' ? '-' : position}`
}

/** What a place names after a position, at most so many. */
export async function readPlace(reader: Reader, keys: Keys, place: Place, after: string): Promise<PlacePage> {
  const { source, host = '' } = place
  if (source === 'pending') {
    const rows = await pendingEntries(reader, keys.stream(host), after, rowsAtOnce)
    return {
      entries: rows.map(({ entry, delivery }) => ({ id: delivery ?? '', position: entry })),
      end: rows.length < rowsAtOnce,
    }
  }
  if (source === 'stream') {
    const from = after === '' ? '-' : `(${after}`
    const entries = entriesOf(await reader.one(['XRANGE', keys.stream(host), from, '+', 'COUNT', rowsAtOnce]))
    return {
      entries: entries.map((entry) => ({ id: entry.delivery, position: entry.id })),
      end: entries.length < rowsAtOnce,
    }
  }
  const { members, end } = await readSortedSet(reader, keyOf(keys, place), after)
  return {
    entries: members.map(({ member, position }) => ({ id: member.split('/')[0] ?? member, position })),
    end,
  }
}

function keyOf(keys: Keys, { source, host }: Place): string {
  return source === 'held' || source === 'unknown' ? keys[source] : keys.awaiting(host ?? '')
}

/** Stream entries with the delivery that each names. */
function entriesOf(reply: unknown): { id: string; delivery: string }[] {
  if (!Array.isArray(reply)) return []
  return reply.map((entry: unknown) => {
    const [id, fields] = entry as [string, string[]]
    return { id, delivery: fields[1] ?? '' }
  })
}
