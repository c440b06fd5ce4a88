import { z } from 'zod'
import { components } from './components.js'
import { deliveryStates } from './states.js'
import { count, timeMs, type View } from './view-parts.js'

// What readers of the record are shown of hosts, their nodes, and what fences them, in the SDK and over HTTP alike.

/** An entry of a pending list of Redis, beside the row it should agree with. */
export const pendingEntrySchema = z
  .object({
    hub: z.string().optional().describe('in a set of hubs: the one that says it'),
    host: z.string(),
    entry: z.string(),
    consumer: z.string(),
    idleMs: z.int(),
    delivery: z.string().optional(),
    state: z.enum(deliveryStates).optional(),
    epoch: count.optional(),
    owner: z.string().optional(),
  })
  .register(components, { id: 'PendingEntry' })
/** An entry of a pending list of Redis, beside the row it should agree with. @interface */
export type PendingEntry = View<typeof pendingEntrySchema>

export const nodeViewSchema = z
  .object({
    node: z.string(),
    hub: z.string().optional().describe('in a set of hubs: the one that says it'),
    state: z.enum(['live', 'left']).describe('live: it has not left; its heartbeat tells how fresh it is'),
    incarnation: count,
    heartbeatAgeMs: count,
    progressAgeMs: count.optional().describe('since its work loop last made progress, as of its last beat'),
    blockingMs: count.optional().describe('what held its event loop in the last heartbeat period'),
    blockingLongestMs: count.optional(),
    mirrorCommits: count.optional().describe('commits of its mirror in the last heartbeat period'),
    mirrorMs: count.optional(),
    mirrorLongestMs: count.optional(),
  })
  .register(components, { id: 'Node' })
/** A node, as its last heartbeat told. @interface */
export type NodeView = View<typeof nodeViewSchema>

export const hostViewSchema = z
  .object({
    host: z.string(),
    hub: z.string().optional().describe('in a set of hubs: the one that says it'),
    joined: z.boolean().describe('false for a host that is only queued for'),
    retiredAt: timeMs.optional(),
    entries: count.describe('queued, parked, claimed and mirrored'),
    awaiting: count.describe('delivered and not finished'),
    nodes: z.array(nodeViewSchema),
  })
  .register(components, { id: 'Host' })
/** A host, its nodes and what waits for it. @interface */
export type HostView = View<typeof hostViewSchema>

export const fenceViewSchema = z
  .object({
    fence: z.string().describe('`<kind>:<scope>`, the field of the fences hash'),
    known: z.boolean().describe('false for a field that no rule reads'),
    missing: z
      .array(z.string())
      .optional()
      .describe('in a set of hubs: those where it should stand and does not; setting it again finishes it'),
    reason: z.string(),
    actor: z.string().optional(),
    at: z.number().optional(),
    until: z.number().optional(),
  })
  .register(components, { id: 'Fence' })
/** A fence that stands, or a field of the fences hash that no rule reads. @interface */
export type FenceView = View<typeof fenceViewSchema>

export const fenceReplySchema = z
  .object({
    fence: z.string(),
    logId: z.string(),
    replaced: z.string().optional().describe('the reason that stood there before, as it was written'),
  })
  .register(components, { id: 'FenceSet' })
/** A fence after it was set. @interface */
export type FenceReply = View<typeof fenceReplySchema>

export const liftReplySchema = z
  .object({
    fence: z.string(),
    reason: z.string(),
    hostsRung: count,
    left: count.describe('held deliveries that the next claims give back'),
    logId: z.string(),
  })
  .register(components, { id: 'FenceLifted' })
/** A fence after it was lifted, and what that gave back. @interface */
export type LiftReply = View<typeof liftReplySchema>
