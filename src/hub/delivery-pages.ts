import type { DeliveryView } from '../contract/delivery-views.js'
import { HoldfastError } from '../contract/errors.js'
import type { DeliveryFilter, DeliveryPage } from '../contract/hub.js'
import { messageId, printableId } from '../contract/ids.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { present } from '../record/replies.js'
import {
  cursorOf,
  filledOf,
  isSamePlace,
  type Place,
  placesFrom,
  positionOf,
  readPlace,
} from './delivery-places.js'
import { notOurs, pageLimit } from './sorted-sets.js'
import { readDeliveries } from './views.js'

/** What one page looks at, whatever it finds. */
const rowsAtMost = 1000
const placesAtMost = 500
/** A place that is read counts as so many rows at least: its round trips take as long. */
const rowsAPlace = 20

/**
 * One page of live deliveries: queued, claimed and mirrored ones by host in stream order, then delivered
 * ones by host, then the held queue, then those whose copy was in doubt. What stays where it is while the
 * pages are read is shown once. A page looks at a bounded number of rows and hosts: it may be empty and have a cursor.
 * Of a message all deliveries are listed, in every state, by number.
 * @throws INVALID_ARGUMENT for a cursor that is none of ours
 */
export async function listDeliveries(
  reader: Reader,
  keys: Keys,
  filter: DeliveryFilter,
): Promise<DeliveryPage> {
  const limit = pageLimit(filter)
  checkFilter(filter)
  if (filter.message !== undefined) return await pageOfMessage(reader, keys, filter, limit)
  const start = positionOf(filter.cursor)
  const places = await placesFrom(reader, keys, filter, start)
  const looked = places.slice(0, placesAtMost)
  const filled = await filledOf(reader, keys, looked)
  const found: DeliveryView[] = []
  let rows = 0
  for (const place of looked) {
    if (!filled.has(place)) continue
    let position = isSamePlace(place, start) ? start.position : ''
    for (let end = false; !end; ) {
      if (rows >= rowsAtMost) return { deliveries: found, cursor: cursorOf(place, position) }
      const page = await readPlace(reader, keys, place, position)
      const ids = page.entries.map(({ id }) => id)
      rows += Math.max(rowsAPlace, ids.length)
      const views = new Map((await readDeliveries(reader, keys, ids)).map((view) => [view.id, view]))
      for (const entry of page.entries) {
        position = entry.position
        const view = views.get(entry.id)
        if (view === undefined || !isIn(view, place, filter) || !isWanted(view, filter)) continue
        found.push(view)
        if (found.length >= limit) return { deliveries: found, cursor: cursorOf(place, position) }
      }
      end = page.end
    }
  }
  const next = places[placesAtMost]
  return { deliveries: found, ...present('cursor', next === undefined ? undefined : cursorOf(next, '')) }
}

/** @throws INVALID_ARGUMENT */
function checkFilter({ conversation, session, reason }: DeliveryFilter): void {
  if (conversation !== undefined) printableId(conversation, 'conversation')
  if (session !== undefined) printableId(session, 'session')
  if (reason === '') throw new HoldfastError('INVALID_ARGUMENT', 'the reason is empty')
}

/** The deliveries of one message, read by their ids. The cursor is the number of the last that was looked at. */
async function pageOfMessage(
  reader: Reader,
  keys: Keys,
  filter: DeliveryFilter,
  limit: number,
): Promise<DeliveryPage> {
  const { cursor = '0' } = filter
  if (!/^\d{1,9}$/.test(cursor)) throw notOurs(cursor)
  const message = messageId(filter.message ?? '')
  const made = Number(await reader.one(['HGET', keys.message(message), 'made']))
  const found: DeliveryView[] = []
  const last = Math.min(made, Number(cursor) + rowsAtMost)
  for (let number = Number(cursor); number < last; ) {
    const count = Math.min(last - number, limit - found.length)
    const ids = Array.from({ length: count }, (_, at) => `${message}.${number + at + 1}`)
    const views = await readDeliveries(reader, keys, ids)
    found.push(...views.filter((view) => isOf(view, filter) && isWanted(view, filter)))
    number += count
    if (found.length >= limit && number < made) return { deliveries: found, cursor: String(number) }
  }
  return { deliveries: found, ...present('cursor', last < made ? String(last) : undefined) }
}

const streamStates: readonly string[] = ['queued', 'claimed', 'mirrored']

/** Whether a row is what its place says, so that nothing is listed in two places. */
function isIn(view: DeliveryView, { source, host }: Place, filter: DeliveryFilter): boolean {
  if (host !== undefined && view.host !== host) return false
  if (!isOf(view, filter)) return false
  if (filter.state !== undefined) return true
  if (source === 'stream') return streamStates.includes(view.state)
  return view.state === (source === 'awaiting' ? 'delivered' : source)
}

function isOf(view: DeliveryView, { host, state }: DeliveryFilter): boolean {
  return (host === undefined || view.host === host) && (state === undefined || view.state === state)
}

function isWanted(view: DeliveryView, { conversation, session, reason }: DeliveryFilter): boolean {
  if (conversation !== undefined && view.conversation !== conversation) return false
  if (session !== undefined && view.session !== session) return false
  return reason === undefined || (view.reason ?? '').startsWith(reason)
}
