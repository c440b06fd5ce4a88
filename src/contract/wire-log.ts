import { z } from 'zod'
import { components } from './components.js'
import type { LogFilter } from './log-filter.js'
import type { View } from './view-parts.js'
import { cursor, host, numeric, pageMembers, text } from './wire-parts.js'

// The log over HTTP: by pages, as it grows, and summed up.

const logFilterMembers = {
  verb: z
    .string()
    .regex(/^[a-z_]{1,64}(,[a-z_]{1,64}){0,63}$/, 'must be names of verbs, between commas')
    .optional()
    .describe('entries of any of these verbs, between commas'),
  actor: text.optional().describe('entries of this actor'),
  host: host
    .optional()
    .describe('entries by which something became runnable there, of its nodes, and that name it'),
  about: text
    .optional()
    .describe('entries that name this message, delivery, attempt, session, effect or fence, or part of it'),
}

export const logQuery = z.strictObject({ ...logFilterMembers, ...pageMembers })
export const eventsQuery = z.strictObject({
  lastEventId: z.string().max(64).optional().describe('as the header Last-Event-ID'),
  digestMs: numeric(250, 10_000)
    .optional()
    .describe('at most one event in so many milliseconds, `changes`, which sums up all since the last'),
  ...logFilterMembers,
})

/** The filter that a query states. */
export function logFilterOf(query: {
  readonly verb?: string | undefined
  readonly actor?: string | undefined
  readonly host?: string | undefined
  readonly about?: string | undefined
}): LogFilter {
  const { verb, actor, host: named, about } = query
  return { verbs: verb?.split(','), actor, host: named, about }
}

export const eventSchema = z
  .object({
    at: z.int().describe('Unix ms'),
    verb: z.string(),
    actor: z.string(),
    changes: z.array(z.object({ ids: z.array(z.string()), from: z.string(), to: z.string() })),
    hosts: z.union([z.array(z.string()), z.literal('*')]),
    details: z.record(z.string(), z.string()),
  })
  .register(components, { id: 'Event' })
/** One change of the record, with its time. @interface */
export type Event = View<typeof eventSchema>

export const logEventSchema = eventSchema
  .extend({
    id: z.string().describe('its place in the log, which `Last-Event-ID` takes'),
    hub: z.string().optional().describe('in a set of hubs: the one whose log it is in'),
  })
  .register(components, { id: 'LogEvent' })
/** An entry of a page of the log. @interface */
export type LogEvent = View<typeof logEventSchema>

export const logReply = z.object({
  entries: z.array(logEventSchema).describe('the newest first'),
  cursor: cursor.optional(),
})

export const gapSchema = z
  .object({
    after: z.string().describe('the position that was asked for'),
    first: z.string().describe('the entry with which the log goes on'),
  })
  .register(components, { id: 'Gap' })

export const digestSchema = z
  .object({
    entries: z.int().nonnegative().describe('how many there were since the event before'),
    verbs: z.record(z.string(), z.int().positive()).describe('how many of each verb'),
    hosts: z.union([z.array(z.string()), z.literal('*')]),
  })
  .register(components, { id: 'Changes' })
/** What entries of the log have in common. */
export type Digest = View<typeof digestSchema>
