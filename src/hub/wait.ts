import { setTimeout as sleep } from 'node:timers/promises'
import { HoldfastError } from '../contract/errors.js'
import type { BlockingReader } from '../record/connections.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { type MessageView, readMessage } from './views.js'

const blockAtMostMs = 5000
const retryMs = 500

/** Tells any number of waiters that the log has grown, with one blocking read for all of them. */
export interface LogBell {
  /** Resolves when the log has an entry after the position, after `waitMs` at the latest, or when closed. */
  wait(position: string, waitMs: number): Promise<void>
  close(): Promise<void>
}

export function createLogBell(reader: BlockingReader, log: string): LogBell {
  const waiting = new Map<() => void, string>()
  const closing = new AbortController()
  let readingFrom: string | undefined

  function wakeAll(): void {
    for (const wake of [...waiting.keys()]) wake()
  }

  async function readOn(): Promise<void> {
    while (waiting.size > 0 && !closing.signal.aborted) {
      readingFrom = [...waiting.values()].reduce((least, each) => (isAfter(least, each) ? each : least))
      try {
        const seen = await reader.read({ [log]: readingFrom }, blockAtMostMs, closing.signal)
        if (log in seen) wakeAll()
      } catch {
        await sleep(retryMs, undefined, { signal: closing.signal }).catch(() => undefined)
        wakeAll()
      }
    }
    readingFrom = undefined
  }

  return {
    wait: (position, waitMs) =>
      new Promise((resolve) => {
        // The read under way starts after this position: what it asks for may have come already.
        const passed = readingFrom !== undefined && isAfter(readingFrom, position)
        if (closing.signal.aborted || passed) return resolve()
        const timer = setTimeout(() => wake(), waitMs)
        const wake = () => {
          clearTimeout(timer)
          waiting.delete(wake)
          resolve()
        }
        waiting.set(wake, position)
        if (readingFrom === undefined) void readOn()
      }),
    close: async () => {
      closing.abort()
      wakeAll()
      await reader.close()
    },
  }
}

function isAfter(one: string, other: string): boolean {
  const [ms = 0, sequence = 0] = one.split('-').map(Number)
  const [otherMs = 0, otherSequence = 0] = other.split('-').map(Number)
  return ms > otherMs || (ms === otherMs && sequence > otherSequence)
}

/**
 * Waits until every delivery of a message is settled, or the time is up: answers the message as it stands
 * then. Wakes by the log, where every settlement leaves an entry. @throws MESSAGE_NOT_FOUND, at once
 */
export async function waitForMessage(
  parts: { readonly reader: Reader; readonly keys: Keys; readonly bell: LogBell },
  id: string,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<MessageView> {
  const { reader, keys, bell } = parts
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
    if (settledAt !== null || leftMs <= 0 || signal?.aborted) return readMessage(reader, keys, id)
    await bell.wait(position, Math.min(leftMs, blockAtMostMs))
  }
}

async function lastLogId(reader: Reader, keys: Keys): Promise<string> {
  const last = (await reader.one(['XREVRANGE', keys.log, '+', '-', 'COUNT', 1])) as [string, unknown][]
  return last[0]?.[0] ?? '0-0'
}
