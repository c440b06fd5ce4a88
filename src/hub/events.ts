import { setTimeout as sleep } from 'node:timers/promises'
import { HoldfastError, isHoldfastError, isStoreAway } from '../contract/errors.js'
import type { EventsOptions, HubEvent } from '../contract/events.js'
import { checkedLogFilter, isWantedEntry, type LogEntry, type LogFilter } from '../contract/log-filter.js'
import { isAfter } from '../contract/log-ids.js'
import { streamEntriesOf } from '../record/blocking-reader.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { eventOf, lastLogId, logEntryOf } from './log.js'
import type { LogTail } from './log-tail.js'

/** What following the log takes. */
export interface EventParts {
  readonly reader: Reader
  readonly keys: Keys
  readonly tail: LogTail
}

const entriesAtOnce = 200
const waitMs = 5000
const retryMs = 500
const idPattern = /^\d{1,15}-\d{1,15}$/

/** Whether it is the id of an event. */
export function isEventId(text: string): boolean {
  return idPattern.test(text)
}

/** The log as a hub's `events` has it, until either signal is aborted. @throws INVALID_ARGUMENT */
export async function* readEvents(
  parts: EventParts,
  { lastEventId, signal, ...filter }: EventsOptions,
  closing: AbortSignal,
): AsyncGenerator<HubEvent, void, undefined> {
  const start = ownPosition(lastEventId)
  const over = new AbortController()
  const end = () => over.abort()
  // Not AbortSignal.any: the hub's own signal would keep something of each reader.
  const ends = [closing, ...(signal === undefined ? [] : [signal])]
  for (const each of ends) {
    if (each.aborted) end()
    each.addEventListener('abort', end, { once: true })
  }
  try {
    yield* eventsAfter(parts, start, checkedLogFilter(filter), over.signal)
  } finally {
    for (const each of ends) each.removeEventListener('abort', end)
  }
}

/** @throws INVALID_ARGUMENT for the places of a set, and for what is no place */
function ownPosition(given: EventsOptions['lastEventId']): string | undefined {
  if (given === undefined || (typeof given === 'string' && isEventId(given))) return given
  const isOne = typeof given === 'string'
  const detail = isOne
    ? `${JSON.stringify(given.slice(0, 80))} is no event id`
    : 'lastEventId names hubs, and this is one hub'
  throw new HoldfastError('INVALID_ARGUMENT', detail, { next: 'give the id of the last event alone' })
}

/**
 * Every entry after the position, or from now on, that the filter wants, for as long as somebody listens; the record
 * being away is waited out.
 */
export async function* eventsAfter(
  parts: EventParts,
  start: string | undefined,
  filter: LogFilter,
  signal: AbortSignal,
): AsyncGenerator<HubEvent, void, undefined> {
  for await (const { gap, entries, position } of foundAfter(parts, start, signal)) {
    if (gap !== undefined) yield { kind: 'gap', id: position, ...gap }
    for (const entry of entries) {
      if (signal.aborted) return
      if (isWantedEntry(entry, filter)) yield { kind: 'entry', id: entry.id, entry: eventOf(entry) }
    }
  }
}

/** What one reading found. */
export interface Found {
  readonly entries: readonly LogEntry[]
  /** Set where the log does not reach back to the position. */
  readonly gap?: { readonly after: string; readonly first: string }
  /** Where the entries begin. */
  readonly position: string
}

/** Readings one after the other, without end. An empty one says that there is no more now: the next is waited for. */
export async function* foundAfter(
  parts: EventParts,
  start: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<Found, void, undefined> {
  let position = start
  while (!signal.aborted) {
    const found = await readAfter(parts, position)
    if (found === undefined) {
      await sleep(retryMs, undefined, { signal }).catch(() => undefined)
      continue
    }
    yield found
    position = found.entries.at(-1)?.id ?? found.position
    if (found.entries.length === 0) await parts.tail.wait('any', position, waitMs, signal)
  }
}

/** Undefined while the record cannot be read. Without a position nothing is found but where the log ends. */
async function readAfter(
  { reader, keys }: EventParts,
  position: string | undefined,
): Promise<Found | undefined> {
  try {
    if (position === undefined) return { entries: [], position: await lastLogId(reader, keys) }
    const [own, later, last] = (
      await reader.all([
        ['XRANGE', keys.log, position, position],
        ['XRANGE', keys.log, `(${position}`, '+', 'COUNT', entriesAtOnce],
        ['XREVRANGE', keys.log, '+', '-', 'COUNT', 1],
      ])
    ).map(streamEntriesOf)
    const entries = (later ?? []).map(logEntryOf)
    if (position === '0-0' || (own?.length ?? 0) > 0) return { entries, position }
    // Trimmed past the position, or a record that lost what was told before.
    const end = last?.[0]?.id ?? '0-0'
    const resumed = isAfter(position, end) ? end : position
    return { entries, gap: { after: position, first: entries[0]?.id ?? end }, position: resumed }
  } catch (error) {
    if (isStoreAway(error) || isHoldfastError(error, 'STORE_UNKNOWN')) return undefined
    throw error
  }
}
