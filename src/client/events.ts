import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { backoffMs } from '../contract/backoff.js'
import { HoldfastError, isRepeatable } from '../contract/errors.js'
import type { EventsOptions, HubEvent } from '../contract/events.js'
import type { LogFilter } from '../contract/log-filter.js'
import { eventSchema, gapSchema } from '../contract/wire-log.js'
import type { Calls } from './calls.js'
import { query } from './paths.js'

const retry = { leastMs: 100, mostMs: 5000 }

/** Reads the hub's log as server-sent events, over as many connections as it takes. */
export async function* readEvents(
  calls: Calls,
  options: EventsOptions,
  closing: AbortSignal,
): AsyncGenerator<HubEvent, void, undefined> {
  const signal = options.signal === undefined ? closing : AbortSignal.any([options.signal, closing])
  let position = ownPosition(options.lastEventId)
  const path = `/v1/events${query(filterMembers(options))}`
  for (let failures = 0; !signal.aborted; failures += 1) {
    if (failures > 0) await sleep(backoffMs(retry, failures), undefined, { signal }).catch(() => undefined)
    try {
      const headers = {
        accept: 'text/event-stream',
        ...(position === undefined ? {} : { 'last-event-id': position }),
      }
      for await (const event of await messagesOf(calls, path, headers, signal)) {
        failures = 0
        const found = eventOf(event)
        if (found === undefined) continue
        position = found.id
        yield found
      }
    } catch (error) {
      if (signal.aborted) return
      const cut =
        !(error instanceof Error && 'code' in error) || isRepeatable(error) || isRecordOrLinkGone(error)
      if (!cut) throw error
    }
  }
}

/** A filter of the log as members of a query. */
export function filterMembers({ verbs, actor, host, about }: LogFilter): Record<string, string | undefined> {
  return { verb: verbs?.join(','), actor, host, about }
}

/** @throws INVALID_ARGUMENT for the places of a set, where there is one hub */
function ownPosition(given: EventsOptions['lastEventId']): string | undefined {
  if (typeof given !== 'object') return given
  throw new HoldfastError('INVALID_ARGUMENT', 'lastEventId names hubs, and this is one hub', {
    next: 'give the id of the last event alone',
  })
}

function isRecordOrLinkGone(error: Error & { code?: unknown }): boolean {
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
  path: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<AsyncIterable<SentEvent>> {
  const body = await calls.stream(path, headers, signal)
  // Decoded here: a stream of Node that gives text cannot be counted in bytes, and fails where its reader is slow.
  const text = Readable.toWeb(body).pipeThrough(new TextDecoderStream() as unknown as Decoder)
  return text.pipeThrough(new EventSourceParserStream()) as unknown as AsyncIterable<SentEvent>
}

/** Two libraries of types name the same streams differently. */
type Decoder = Parameters<ReturnType<typeof Readable.toWeb>['pipeThrough']>[0]

/** Undefined for what this version does not know. */
function eventOf({ id, event, data }: SentEvent): HubEvent | undefined {
  if (id === undefined) return undefined
  const value: unknown = JSON.parse(data)
  if (event === 'gap') {
    const gap = gapSchema.safeParse(value)
    return gap.success ? { kind: 'gap', id, ...gap.data } : undefined
  }
  const parsed = eventSchema.safeParse(value)
  return parsed.success ? { kind: 'entry', id, entry: parsed.data } : undefined
}
