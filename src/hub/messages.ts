import { HoldfastError } from '../contract/errors.js'
import type { MessageFilter, Page, Payload } from '../contract/hub.js'
import { isMessageId, messageId, printableId } from '../contract/ids.js'
import { acceptedIn, entryOfMessage, leastMessageOf } from '../contract/log-filter.js'
import { isAfter, isLogId } from '../contract/log-ids.js'
import type { MessageHead } from '../contract/overview.js'
import type { Store } from '../record/connections.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { present } from '../record/replies.js'
import { entriesBack, logEntryOf, lookedAtAtMost } from './log.js'
import { notOurs, pageLimit } from './sorted-sets.js'
import { messageHead } from './views.js'

/** Rows that one page reads. */
const rowsAtMost = 1000
const rowsAtOnce = 200
const rowsAtLeast = 20

/** One page of messages, the newest first, by the entries of the log that record them. @throws INVALID_ARGUMENT */
export async function listMessages(
  reader: Reader,
  keys: Keys,
  filter: MessageFilter = {},
): Promise<Page<MessageHead>> {
  const limit = pageLimit(filter)
  checkFilter(filter)
  const { cursor } = filter
  if (cursor !== undefined && !isPlace(cursor)) throw notOurs(cursor)
  if (filter.id !== undefined || filter.key !== undefined) {
    const ids = await namedBy(reader, keys, filter)
    return { entries: (await readHeads(reader, keys, ids)).filter((head) => isWanted(head, filter)) }
  }
  return await pageOfLog(reader, keys, filter, limit)
}

/** A page begins at the entry that records the message. */
function isPlace(message: string): boolean {
  return isMessageId(message) && isLogId(entryOfMessage(message))
}

/** @throws INVALID_ARGUMENT */
function checkFilter({ id, ...others }: MessageFilter): void {
  if (id !== undefined) messageId(id)
  for (const name of ['key', 'conversation', 'sender'] as const) {
    const given = others[name]
    if (given !== undefined) printableId(given, name)
  }
}

/** The one message that an id, a key, or both name. */
async function namedBy(reader: Reader, keys: Keys, { id, key }: MessageFilter): Promise<string[]> {
  if (key === undefined) return id === undefined ? [] : [id]
  const known = await reader.one(['GET', keys.idempotency(key)])
  const own = typeof known === 'string' ? known.split(' ')[0] : undefined
  return own !== undefined && (id === undefined || id === own) ? [own] : []
}

async function pageOfLog(
  reader: Reader,
  keys: Keys,
  filter: MessageFilter,
  limit: number,
): Promise<Page<MessageHead>> {
  const { cursor, sender } = filter
  const entries: MessageHead[] = []
  let due: string[] = []
  let rows = 0

  /** Reads the rows that are due; where the page is full, or has read enough, it answers where the next begins. */
  async function take(): Promise<string | undefined> {
    const ids = due
    due = []
    rows += ids.length
    for (const head of await readHeads(reader, keys, ids)) {
      if (!isWanted(head, filter)) continue
      entries.push(head)
      if (entries.length >= limit) return head.id
    }
    return rows >= rowsAtMost ? ids.at(-1) : undefined
  }

  let looked = 0
  const place = cursor === undefined ? '+' : entryOfMessage(cursor)
  for await (const each of entriesBack(reader, keys, place, limit + 1)) {
    const entry = logEntryOf(each)
    looked += 1
    // An entry of several senders says so instead of naming one.
    const isOfSender = sender === undefined || entry.actor === sender || entry.actor === 'several'
    const ids = isOfSender ? acceptedIn(entry).reverse() : []
    due.push(...ids.filter((id) => cursor === undefined || isAfter(cursor, id)))
    const atOnce = Math.min(rowsAtOnce, Math.max(rowsAtLeast, limit - entries.length))
    const isEnough = looked >= lookedAtAtMost
    if (due.length < atOnce && !isEnough) continue
    const next = await take()
    if (next !== undefined) return { entries, cursor: next }
    if (isEnough) return { entries, cursor: leastMessageOf(each.id) }
  }
  return { entries, ...present('cursor', await take()) }
}

function isWanted(head: MessageHead, { conversation, sender }: MessageFilter): boolean {
  if (conversation !== undefined && head.conversation !== conversation) return false
  return sender === undefined || head.sender === sender
}

/** Of those that are there: a message goes with the retention before the log forgets it. */
async function readHeads(reader: Reader, keys: Keys, ids: readonly string[]): Promise<MessageHead[]> {
  const rows = await reader.hashes(ids.map((id) => keys.message(id)))
  return ids.flatMap((id, at) => {
    const row = rows[at]
    return row?.has('accepted_at') ? [messageHead(id, row)] : []
  })
}

/** @throws MESSAGE_NOT_FOUND, INVALID_ARGUMENT */
export async function readPayload(store: Store, reader: Reader, keys: Keys, id: string): Promise<Payload> {
  const [head] = await readHeads(reader, keys, [messageId(id)])
  const bytes = await store.call(['GET', keys.payload(id)], { buffers: true })
  if (head === undefined || !Buffer.isBuffer(bytes)) {
    throw new HoldfastError('MESSAGE_NOT_FOUND', `no message ${id}`)
  }
  return { bytes, ...present('contentType', head.contentType), sha256: head.sha256 }
}
