// The end of a history: what the record holds, all of it, as the checker reads it.

import type { AttemptView, DeliveryView } from '../contract/delivery-views.js'
import type { HubCalls } from '../contract/hub.js'
import { piecesOf, scanKeys } from '../hub/scan.js'
import { readDeliveries } from '../hub/views.js'
import { streamEntriesOf } from '../record/blocking-reader.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { present } from '../record/replies.js'
import type { Final, FinalAttempt, FinalDelivery, FinalMessage, LogEntry } from './checker/words.js'

const logPage = 2000
const rowsAtOnce = 200

/** What is asked of the hub, beside what is read of its record. */
export type Asked = Pick<HubCalls, 'audit' | 'unknown' | 'held'>

/** Messages with how many of their deliveries there are. */
type FoundMessage = FinalMessage & { readonly made: number }

/**
 * Everything that the record of one hub holds, with its whole log. It is read piece by piece: of one moment only where
 * nothing moves meanwhile.
 * @throws STORE_UNKNOWN where there is no record; what the hub's calls throw
 */
export async function readFinal(hub: Asked, reader: Reader, keys: Keys): Promise<Final> {
  const messages = await readMessages(reader, keys)
  const ids = messages.flatMap(({ id, made }) => Array.from({ length: made }, (_, at) => `${id}.${at + 1}`))
  const rows = await readDeliveries(reader, keys, ids)
  return {
    audit: await hub.audit(),
    deliveries: rows.map(deliveryOf),
    unknown: await hub.unknown(),
    held: await hub.held(),
    messages,
    log: await readLog(reader, keys.log),
  }
}

async function readMessages(reader: Reader, keys: Keys): Promise<FoundMessage[]> {
  const prefix = keys.message('')
  const ids = new Set<string>()
  for await (const found of scanKeys(reader, prefix))
    for (const key of found) ids.add(key.slice(prefix.length))
  const messages: FoundMessage[] = []
  for (const piece of piecesOf([...ids].sort(), rowsAtOnce)) {
    const rows = await reader.hashes(piece.map((id) => keys.message(id)))
    messages.push(...piece.map((id, at) => messageOf(id, rows[at])))
  }
  return messages
}

function messageOf(id: string, row: ReadonlyMap<string, string> | undefined): FoundMessage {
  return {
    id,
    key: row?.get('key') ?? '',
    conversation: row?.get('conversation') ?? '',
    sha256: row?.get('sha256') ?? '',
    recipients: Number(row?.get('recipients') ?? 0),
    made: Number(row?.get('made') ?? 0),
  }
}

function deliveryOf(view: DeliveryView): FinalDelivery {
  const { id, message, host, session, conversation, state, epoch, owner, takeovers, reason, attempts } = view
  const more = { ...present('owner', owner), takeovers }
  return {
    id,
    message,
    host,
    ...present('session', session),
    conversation,
    state,
    epoch,
    ...more,
    ...present('reason', reason),
    ...(state === 'held' ? present('heldReason', reason) : {}),
    attempts: attempts.map(attemptOf),
  }
}

function attemptOf(view: AttemptView): FinalAttempt {
  const { id, status, outcome, node, lateReports } = view
  const { incarnation, begunAt, settledAt, errorCode, replayedAt, unknownAt, unknownReason } = view
  const more = {
    incarnation,
    begunAt,
    ...present('settledAt', settledAt),
    ...present('errorCode', errorCode),
    ...present('replayedAt', replayedAt),
    ...present('unknownAt', unknownAt),
    ...present('unknownReason', unknownReason),
  }
  return {
    number: Number(id.split('/')[1]),
    status,
    ...present('outcome', outcome),
    node,
    ...more,
    ...present('lateReports', lateReports),
  }
}

/** The whole log, the oldest entry first. */
async function readLog(reader: Reader, key: string): Promise<LogEntry[]> {
  const entries: LogEntry[] = []
  for (let after = '-'; ; ) {
    const page = streamEntriesOf(await reader.one(['XRANGE', key, after, '+', 'COUNT', logPage]))
    entries.push(...page)
    const last = page.at(-1)
    if (last === undefined || page.length < logPage) return entries
    after = `(${last.id}`
  }
}
