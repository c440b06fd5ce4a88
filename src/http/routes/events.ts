import { z } from 'zod'
import type { HubEvent } from '../../contract/events.js'
import { digestSchema, eventSchema, eventsQuery, gapSchema, logFilterOf } from '../../contract/wire-log.js'
import { type DigestEvent, digestsAfter } from '../../hub/digests.js'
import { eventsAfter, isEventId } from '../../hub/events.js'
import { lastLogId } from '../../hub/log.js'
import { access } from '../access.js'
import { callSignal } from '../ends.js'
import { problem } from '../problem.js'
import { type App, type RouteParts, replies } from './parts.js'

/** For the last of a stream to be read once it is over. */
const lingerMs = 1000

const eventsHeaders = z.object({
  'last-event-id': z
    .string()
    .optional()
    .describe('the id of the last event that was seen; without it the stream begins now'),
})

const eventsAnswer = {
  description:
    'Events without end. `event` is the verb, `gap`, or `changes` where a digest was asked for; `id` is the place in the log; this is the form of `data`',
  content: { 'text/event-stream': { schema: z.union([eventSchema, gapSchema, digestSchema]) } },
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
        summary:
          'The log as server-sent events, all of it or what a filter wants; `Last-Event-ID` resumes, `gap` tells where it cannot',
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
      if (from !== undefined && !isEventId(from)) {
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
      const { digestMs, ...query } = request.query
      const filter = logFilterOf(query)
      await reply.sse.send(
        digestMs === undefined
          ? entriesOf(eventsAfter(parts, start, filter, signal))
          : digestsOf(digestsAfter(parts, { start, filter, everyMs: digestMs }, signal)),
      )
      reply.sse.close()
    },
  )
}

async function* entriesOf(events: AsyncIterable<HubEvent>): AsyncGenerator<ServerEvent> {
  for await (const event of events) {
    if (event.kind === 'entry') yield { id: event.id, event: event.entry.verb, data: event.entry }
    else yield { id: event.id, event: 'gap', data: { after: event.after, first: event.first } }
  }
}

async function* digestsOf(events: AsyncIterable<DigestEvent>): AsyncGenerator<ServerEvent> {
  for await (const event of events) {
    if (event.kind === 'changes') yield { id: event.id, event: 'changes', data: event.digest }
    else yield { id: event.id, event: 'gap', data: event.gap }
  }
}
