import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { isAfter } from '../contract/log-ids.js'
import { attestRecord } from '../record/attest.js'
import type { Store } from '../record/connections.js'
import type { Functions } from '../record/functions.js'
import { watchForLosses } from './losses.js'

/** A hub's part in attesting its record (contract section 9). */
export interface Attesting {
  /** The hub answered for this message, which this entry of the log recorded. */
  accepted(logId: string, messageId: string): void
  /** Why nothing is granted now; undefined when the record was attested at the last look. */
  trouble(): string | undefined
  stop(): Promise<void>
}

const everyMs = 1000
const whileWaitingMs = 250

/** Presents what this hub saw, again and again, so that a server which started anew is attested without anybody asking. */
export function keepAttesting(
  store: Store,
  functions: Functions,
  onLost: (messageIds: readonly string[]) => void,
): Attesting {
  const losses = watchForLosses(functions)
  const presenter = `hub ${randomUUID().slice(0, 8)}`
  const closing = new AbortController()
  let lastSeen = '0-0'
  let trouble: string | undefined
  let presentedTo: string | undefined

  async function look(): Promise<void> {
    try {
      const reply = await attestRecord(store, functions, presenter, lastSeen, presentedTo)
      const { attested, waitedFor } = reply
      if (attested) {
        const lost = await losses.lookOn(reply.replicationId, presenter)
        if (lost.length > 0) onLost(lost)
      }
      presentedTo = reply.replicationId
      trouble = attested ? undefined : `the record is not attested yet; waited for: ${waitedFor.join(', ')}`
    } catch (error) {
      trouble = `whether the record is attested could not be looked at: ${String(error)}`
    }
  }

  async function keepLooking(): Promise<void> {
    while (!closing.signal.aborted) {
      await look()
      const pauseMs = trouble === undefined ? everyMs : whileWaitingMs
      await sleep(pauseMs, undefined, { signal: closing.signal, ref: false }).catch(() => undefined)
    }
  }

  const looking = keepLooking()
  return {
    accepted: (logId, messageId) => {
      losses.accepted(messageId)
      if (isAfter(logId, lastSeen)) lastSeen = logId
    },
    trouble: () => trouble,
    stop: async () => {
      closing.abort()
      await looking
    },
  }
}
