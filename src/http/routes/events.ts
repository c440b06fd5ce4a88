import { isHoldfastError } from '../../contract/errors.js'
import { eventsQuery } from '../../contract/wire.js'
import type { LogEntry } from '../../hub/log-tail.js'
import { isAfter, lastLogId, logEntryOf } from '../../hub/log-tail.js'
import { streamEntriesOf } from '../../record/connections.js'
import { access, callSignal } from '../access.js'
import { problem } from '../problem.js'
import type { App, RouteParts } from './parts.js'

const entriesAtOnce = 200
const waitMs = 5000
const retryMs = 500
const idPattern = /^\d{1,15}-\d{1,15}$/

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
        summary: 'The log as server-sent events; `Last-Event-ID` resumes, `gap` tells where it cannot',
        tags: ['events'],
        querystring: eventsQuery,
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
      reply.sse.sendHeaders()
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
      await parts.tail.wait('any', position, retryMs, signal)
      continue
    }
    if (found.gap !== undefined) {
      yield { id: found.position, event: 'gap', data: found.gap }
      position = found.position
    }
    for (const entry of found.entries) {
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
    const [own, later, edge, last] = (
      await reader.all([
        ['XRANGE', keys.log, position, position],
        ['XRANGE', keys.log, `(${position}`, '+', 'COUNT', entriesAtOnce],
        ['XRANGE', keys.log, '-', '+', 'COUNT', 1],
        ['XREVRANGE', keys.log, '+', '-', 'COUNT', 1],
      ])
    ).map(streamEntriesOf)
    const entries = (later ?? []).map(logEntryOf)
    const first = edge?.[0]?.id ?? '0-0'
    const end = last?.[0]?.id ?? '0-0'
    const reachesBack = position === '0-0' || (own?.length ?? 0) > 0
    if (reachesBack || (!isAfter(first, position) && !isAfter(position, end))) return { entries, position }
    // Trimmed past the position, or a record that has gone back behind it.
    const resumed = isAfter(position, end) ? end : position
    return { entries, gap: { after: position, first: entries[0]?.id ?? end }, position: resumed }
  } catch (error) {
    if (isHoldfastError(error, 'STORE_UNAVAILABLE', 'DEADLINE_EXCEEDED')) return undefined
    throw error
  }
}

function eventOf({ id, verb, actor, changes, hosts, details }: LogEntry): ServerEvent {
  const at = Number(id.slice(0, id.indexOf('-')))
  return { id, event: verb, data: { at, verb, actor, changes, hosts, details } }
}
