import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import type { z } from 'zod'
import { backoffMs } from '../contract/backoff.js'
import { HoldfastError } from '../contract/errors.js'
import { eventSchema } from '../contract/wire.js'
import { type Calls, isRepeatable } from './calls.js'

export interface EventsOptions {
  /** Begin after this event; from now on when absent. Of a set: the last event of each hub, by its name. */
  readonly lastEventId?: string | Readonly<Record<string, string>> | undefined
  /** Ends the reading. */
  readonly signal?: AbortSignal | undefined
}

/**
 * One entry of the hub's log, or a `gap` where the log no longer reaches back. Of a set it says which hub's log; the
 * id is the place in that one.
 */
export type HubEvent = (
  | { readonly kind: 'entry'; readonly id: string; readonly entry: z.output<typeof eventSchema> }
  | { readonly kind: 'gap'; readonly id: string; readonly after: string }
) & { readonly hub?: string }

const retry = { leastMs: 100, mostMs: 5000 }

/** Reads the hub's log as server-sent events, over as many connections as it takes. */
export async function* readEvents(
  calls: Calls,
  options: EventsOptions,
  closing: AbortSignal,
): AsyncGenerator<HubEvent, void, undefined> {
  const signal = options.signal === undefined ? closing : AbortSignal.any([options.signal, closing])
  let position = ownPosition(options.lastEventId)
  for (let failures = 0; !signal.aborted; failures += 1) {
    if (failures > 0) await sleep(backoffMs(retry, failures), undefined, { signal }).catch(() => undefined)
    try {
      const headers = {
        accept: 'text/event-stream',
        ...(position === undefined ? {} : { 'last-event-id': position }),
      }
      for await (const event of await messagesOf(calls, headers, signal)) {
        failures = 0
        const found = eventOf(event)
        if (found === undefined) continue
        position = found.id
        yield found
      }
    } catch (error) {
      if (signal.aborted) return
      const cut = !(error instanceof Error && 'code' in error) || isRepeatable(error) || isStoreAway(error)
      if (!cut) throw error
    }
  }
}

/** @throws INVALID_ARGUMENT for the places of a set, where there is one hub */
function ownPosition(given: EventsOptions['lastEventId']): string | undefined {
  if (typeof given !== 'object') return given
  throw new HoldfastError('INVALID_ARGUMENT', 'lastEventId names hubs, and this is one hub', {
    next: 'give the id of the last event alone',
  })
}

function isStoreAway(error: Error & { code?: unknown }): boolean {
  return (
    error.code === 'STORE_UNKNOWN' || typeof error.code !== 'string' || /^(E[A-Z]+|ERR_)/.test(error.code)
  )
}

interface SentEvent {
  readonly id?: string | undefined
  readonly event?: string | undefined
  readonly data: string
}

async function messagesOf(
  calls: Calls,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<AsyncIterable<SentEvent>> {
  const body = await calls.stream('/v1/events', headers, signal)
  body.setEncoding('utf8')
  return Readable.toWeb(body).pipeThrough(
    new EventSourceParserStream(),
  ) as unknown as AsyncIterable<SentEvent>
}

/** Undefined for what this version does not know. */
function eventOf({ id, event, data }: SentEvent): HubEvent | undefined {
  if (id === undefined) return undefined
  const value: unknown = JSON.parse(data)
  if (event === 'gap') return { kind: 'gap', id, after: String((value as { after?: unknown }).after ?? '') }
  const parsed = eventSchema.safeParse(value)
  return parsed.success ? { kind: 'entry', id, entry: parsed.data } : undefined
}
