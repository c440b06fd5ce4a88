import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { isHoldfastError } from '../../contract/errors.js'
import { isAfter } from '../../contract/log-ids.js'
import { eventSchema, eventsQuery } from '../../contract/wire.js'
import type { LogEntry } from '../../hub/log-tail.js'
import { lastLogId, logEntryOf } from '../../hub/log-tail.js'
import { streamEntriesOf } from '../../record/connections.js'
import { access } from '../access.js'
import { callSignal } from '../ends.js'
import { problem } from '../problem.js'
import { type App, type RouteParts, replies } from './parts.js'

const entriesAtOnce = 200
const waitMs = 5000
const retryMs = 500
/** For the last of a stream to be read once it is over. */
const lingerMs = 1000
const idPattern = /^\d{1,15}-\d{1,15}$/

const eventsHeaders = z.object({
  'last-event-id': z
    .string()
    .optional()
    .describe('the id of the last event that was seen; without it the stream begins now'),
})

const gapSchema = z
  .object({
    after: z.string().describe('the position that was asked for'),
    first: z.string().describe('the entry with which the log goes on'),
  })
  .meta({ id: 'Gap' })

const eventsAnswer = {
  description:
    'Events without end. `event` is the verb, or `gap`; `id` is the place in the log; this is the form of `data`',
  content: { 'text/event-stream': { schema: z.union([eventSchema, gapSchema]) } },
}

interface ServerEvent {
  readonly id: string
  readonly event: string
  readonly data: unknown
}

/** Events: the log as server-sent events. */
export function addEventRoute(app: App, parts: RouteParts): void {
  app.get(
    '/v1/events',
    {
      sse: { kind: 'only', heartbeat: true },
      config: { access: access.readers, waits: true },
      schema: {
        operationId: 'streamEvents',
        summary: 'The log as server-sent events; `Last-Event-ID` resumes, `gap` tells where it cannot',
        tags: ['events'],
        headers: eventsHeaders,
        querystring: eventsQuery,
        response: replies({ 200: eventsAnswer }),
      },
    },
    async (request, reply) => {
      const header = request.headers['last-event-id']
      const from =
        request.query.lastEventId ?? (typeof header === 'string' && header !== '' ? header : undefined)
      if (from !== undefined && !idPattern.test(from)) {
        throw problem('INVALID_ARGUMENT', `${JSON.stringify(from).slice(0, 80)} is no event id`, {
          pointer: 'header:last-event-id',
        })
      }
      const start = from ?? (await lastLogId(parts.reader, parts.keys))
      const signal = callSignal(request, reply, parts.closing)
      // A client that does not read cannot keep its stream for longer than it may.
      signal.addEventListener('abort', () => setTimeout(() => reply.raw.destroy(), lingerMs).unref())
      reply.sse.sendHeaders()
      // Else they would wait for the first event.
      reply.raw.flushHeaders()
      await reply.sse.send(eventsFrom(parts, start, signal))
      reply.sse.close()
    },
  )
}

/** Every entry after the position, for as long as somebody listens; the record being away is waited out. */
async function* eventsFrom(
  parts: RouteParts,
  start: string,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  let position = start
  while (!signal.aborted) {
    const found = await readAfter(parts, position)
    if (found === undefined) {
      await sleep(retryMs, undefined, { signal }).catch(() => undefined)
      continue
    }
    if (found.gap !== undefined) {
      yield { id: found.position, event: 'gap', data: found.gap }
      position = found.position
    }
    for (const entry of found.entries) {
      if (signal.aborted) return
      yield eventOf(entry)
      position = entry.id
    }
    if (found.entries.length === 0) await parts.tail.wait('any', position, waitMs, signal)
  }
}

interface Found {
  readonly entries: readonly LogEntry[]
  /** Set where the log does not reach back to the position. */
  readonly gap?: { readonly after: string; readonly first: string }
  readonly position: string
}

/** Undefined while the record cannot be read. */
async function readAfter({ reader, keys }: RouteParts, position: string): Promise<Found | undefined> {
  try {
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
    if (isHoldfastError(error, 'STORE_UNAVAILABLE', 'DEADLINE_EXCEEDED', 'STORE_UNKNOWN')) return undefined
    throw error
  }
}

function eventOf({ id, verb, actor, changes, hosts, details }: LogEntry): ServerEvent {
  const at = Number(id.slice(0, id.indexOf('-')))
  return { id, event: verb, data: { at, verb, actor, changes, hosts, details } }
}
