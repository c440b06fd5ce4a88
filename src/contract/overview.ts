import { z } from 'zod'
import { components } from './components.js'
import { messageViewSchema } from './delivery-views.js'
import { effectBases } from './effects.js'
import { deliveryStates } from './states.js'
import { count, timeMs, type View } from './view-parts.js'

// What shows a hub at a glance, in the SDK and over HTTP alike. Times are Unix ms by the clock of Redis.

/** The lists in which deliveries and messages wait. */
export const listNames = ['queued', 'claimed', 'delivered', 'held', 'unknown', 'obligations'] as const
export type ListName = (typeof listNames)[number]

/** How one list of the record is: how much it holds, and since when the oldest of it waits. */
const listVitalsSchema = z.object({
  count: count.optional().describe('entries; absent where the deliveries by state tell'),
  oldestAgeMs: count.describe('of the oldest entry; 0 where there is none'),
})

/** The figures by which a hub is watched, as the record has them. */
export const overviewSchema = z
  .object({
    hub: z.string().describe('its name; of a set: the names, between commas'),
    at: timeMs.describe('when it was read, by the clock of Redis'),
    recipients: count.describe('recipients of all messages that were ever accepted'),
    deliveries: z.record(z.enum(deliveryStates), count).describe('deliveries by state'),
    attempts: z
      .object({
        done: count.describe('with a result'),
        terminal: count.describe('will never succeed'),
      })
      .describe('attempts settled for good, by outcome'),
    pruned: count.describe('deliveries that went with the retention'),
    takeovers: count.describe('deliveries taken over from a node that was gone'),
    lateReports: count.describe('reports refused because the attempt had an outcome'),
    attemptReplays: count.describe('attempts begun again, declared idempotent'),
    effectTakeovers: z
      .record(z.enum(effectBases), count)
      .describe('effects taken over after an unknown outcome'),
    resolutions: count.describe('unknown outcomes that an operator decided'),
    lists: z.record(z.enum(listNames), listVitalsSchema).describe('where something waits'),
    hosts: count.describe('hosts that were ever sent to or joined; of a set: on each of its hubs'),
    strandedHosts: count.describe('hosts with work and no live node, as the sweep `stale` saw it last'),
    fences: count.describe(
      'fences that stand, lapsed ones that nobody lifted too; of a set: on each of its hubs',
    ),
    effectsExecuting: count.describe('effects that are claimed and not settled'),
    nodes: z
      .object({
        live: count.describe('heard within stale_after_ms; of a set: on each of its hubs'),
        silent: count.describe('not left, and not heard within stale_after_ms'),
        blockingLongestMs: z
          .number()
          .describe('the longest that synchronous work held a live node, last period'),
        progressAgeMs: z.number().describe('since a live node last had an answer to a claim; the worst'),
        mirrorMeanMs: z.number().describe('a commit of a mirror, in the last heartbeat period'),
        mirrorLongestMs: z.number(),
      })
      .describe('nodes that have not left'),
  })
  .register(components, { id: 'Overview' })
/** A hub at a glance: what its log and its lists come to. @interface */
export type Overview = View<typeof overviewSchema>

/** A message without its deliveries. */
export const messageHeadSchema = messageViewSchema
  .omit({ deliveries: true })
  .extend({ settled: count.describe('deliveries that are settled') })
  .register(components, { id: 'MessageHead' })
/** A message without its deliveries. @interface */
export type MessageHead = View<typeof messageHeadSchema>

/** One reading of the counts. */
export const sampleSchema = z
  .object({
    at: timeMs,
    recipients: count.describe('accepted until then'),
    done: count.describe('attempts settled with a result until then'),
    terminal: count.describe('attempts settled as terminal until then'),
    failed: count.describe('deliveries that failed, and are not pruned'),
    queued: count.describe('deliveries that wait'),
    inFlight: count.describe('claimed or mirrored'),
    open: count.describe('delivered and not finished'),
    held: count,
    unknown: count.describe('entries of the unknown list'),
  })
  .register(components, { id: 'Sample' })
export type Sample = View<typeof sampleSchema>

/** What the counts were lately, as one process of the hub saw them. */
export const historySchema = z
  .object({
    everyMs: count.describe('milliseconds between two samples'),
    samples: z.array(sampleSchema).describe('the oldest first'),
  })
  .register(components, { id: 'History' })
export type History = View<typeof historySchema>
