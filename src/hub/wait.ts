import type { MessageView } from '../contract/delivery-views.js'
import { HoldfastError } from '../contract/errors.js'
import { requireMs } from '../contract/time-limit.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { lastLogId } from './log.js'
import type { LogTail } from './log-tail.js'
import { readMessage } from './views.js'

const waitAtMostMs = 5000

/**
 * Waits until every delivery of a message is settled, or the time is up: answers the message as it stands
 * then. Wakes by the log, where every settlement leaves an entry. @throws MESSAGE_NOT_FOUND, INVALID_ARGUMENT, at once
 */
export async function waitForMessage(
  parts: { readonly reader: Reader; readonly keys: Keys; readonly tail: LogTail },
  id: string,
  timeoutMs: number,
  until: { readonly signal?: AbortSignal | undefined; isOver(): boolean },
): Promise<MessageView> {
  requireMs('timeoutMs', timeoutMs)
  const { reader, keys, tail } = parts
  const deadlineAt = performance.now() + timeoutMs
  for (;;) {
    const position = await lastLogId(reader, keys)
    const [acceptedAt, settledAt] = (await reader.one([
      'HMGET',
      keys.message(id),
      'accepted_at',
      'settled_at',
    ])) as (string | null)[]
    if (acceptedAt === null) throw new HoldfastError('MESSAGE_NOT_FOUND', `no message ${id}`)
    const leftMs = deadlineAt - performance.now()
    if (settledAt !== null || leftMs <= 0 || until.isOver()) return readMessage(reader, keys, id)
    await tail.wait(`message:${id}`, position, Math.min(leftMs, waitAtMostMs), until.signal)
  }
}
