import type { LogPageOptions, Page } from '../contract/hub.js'
import { checkedLogFilter, isWantedEntry, type LogEntry } from '../contract/log-filter.js'
import { isLogId } from '../contract/log-ids.js'
import type { LogEvent } from '../contract/wire-log.js'
import { type StreamEntry, streamEntriesOf } from '../record/blocking-reader.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { present } from '../record/replies.js'
import { notOurs, pageLimit } from './sorted-sets.js'

/** Entries that one page of the log, or of what is found in it, looks at. */
export const lookedAtAtMost = 2000
const entriesAtOnce = 500

/** Entries of the log from a place back, as XREVRANGE takes it, the newest first; the first slice is of so many. */
export async function* entriesBack(
  reader: Reader,
  keys: Keys,
  place: string,
  atFirst: number,
): AsyncGenerator<StreamEntry, void, undefined> {
  let from = place
  for (let count = atFirst; ; count *= 2) {
    const asked = Math.min(count, entriesAtOnce)
    const slice = streamEntriesOf(await reader.one(['XREVRANGE', keys.log, from, '-', 'COUNT', asked]))
    yield* slice
    const last = slice.at(-1)
    if (last === undefined || slice.length < asked) return
    from = `(${last.id}`
  }
}

/** One page of the log, the newest entry first. @throws INVALID_ARGUMENT */
export async function readLogPage(
  reader: Reader,
  keys: Keys,
  options: LogPageOptions = {},
): Promise<Page<LogEvent>> {
  const filter = checkedLogFilter(options)
  const limit = pageLimit(options)
  const { cursor } = options
  if (cursor !== undefined && !isLogId(cursor)) throw notOurs(cursor)
  const entries: LogEvent[] = []
  let looked = 0
  let last: string | undefined
  for await (const each of entriesBack(reader, keys, cursor === undefined ? '+' : `(${cursor}`, limit + 1)) {
    // One more than the page takes shows that there is another.
    if (looked >= lookedAtAtMost || entries.length >= limit) return { entries, ...present('cursor', last) }
    const entry = logEntryOf(each)
    if (isWantedEntry(entry, filter)) entries.push({ id: entry.id, ...eventOf(entry) })
    looked += 1
    last = each.id
  }
  return { entries }
}

/** An entry with its time, without its place. */
export function eventOf({ id, ...entry }: LogEntry): Omit<LogEvent, 'id' | 'hub'> {
  return { at: Number(id.slice(0, id.indexOf('-'))), ...entry }
}

/** Reads an entry's fields: `ids`, `from` and `to` come once for each kind of transition. */
export function logEntryOf({ id, fields }: StreamEntry): LogEntry {
  const changes: { ids: readonly string[]; from: string; to: string }[] = []
  const details: Record<string, string> = {}
  let [verb, actor] = ['', '']
  let hosts: readonly string[] | '*' = []
  let change = { ids: [] as readonly string[], from: '' }
  for (const [name, value] of fields) {
    if (name === 'verb') verb = value
    else if (name === 'actor') actor = value
    else if (name === 'ids') change = { ids: value.split(' '), from: '' }
    else if (name === 'from') change = { ...change, from: value }
    else if (name === 'to') changes.push({ ...change, to: value })
    else if (name === 'hosts') hosts = value === '*' ? '*' : value.split(' ')
    else details[name] = value
  }
  return { id, verb, actor, changes, hosts, details }
}

export async function firstLogId(reader: Reader, keys: Keys): Promise<string> {
  const first = (await reader.one(['XRANGE', keys.log, '-', '+', 'COUNT', 1])) as [string, unknown][]
  return first[0]?.[0] ?? '0-0'
}

export async function lastLogId(reader: Reader, keys: Keys): Promise<string> {
  const last = (await reader.one(['XREVRANGE', keys.log, '+', '-', 'COUNT', 1])) as [string, unknown][]
  return last[0]?.[0] ?? '0-0'
}
