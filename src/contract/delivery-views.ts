import { z } from 'zod'
import { components } from './components.js'
import { attemptStatuses, outcomeKinds } from './outcomes.js'
import { deliveryStates } from './states.js'
import { count, timeMs, type View } from './view-parts.js'

// What readers of the record are shown of messages and their deliveries, in the SDK and over HTTP alike.

/** One try at executing a delivery, as recorded. */
export const attemptViewSchema = z
  .object({
    id: z.string().describe('`<delivery>/<n>`'),
    status: z.enum(attemptStatuses),
    node: z.string(),
    incarnation: count,
    begunAt: timeMs,
    settledAt: timeMs.optional(),
    outcome: z.enum(outcomeKinds).optional(),
    result: z.string().optional().describe('JSON text, byte for byte as reported'),
    errorCode: z.string().optional(),
    errorJson: z.string().optional().describe('JSON text, byte for byte as reported'),
    unknownAt: timeMs.optional().describe('set while, or if ever, nobody knew the outcome'),
    unknownReason: z.string().optional(),
    unknownReports: count.optional().describe('how often it was reported unknown'),
    endedAt: timeMs.optional().describe('unknown, but the executor has ended: nothing of it runs any more'),
    replayedAt: timeMs
      .optional()
      .describe('begun again by a later process: its handler is declared idempotent'),
    sessionEpoch: count.optional().describe("its session's epoch when it was begun"),
    lateReports: count.optional().describe('reports after the settlement; kept, never applied'),
    resolvedBy: z.string().optional().describe('the operator whose word it is'),
    evidence: z.string().optional(),
  })
  .register(components, { id: 'Attempt' })
/** One try at executing a delivery, as recorded. @interface */
export type AttemptView = View<typeof attemptViewSchema>

export const timelineEntrySchema = z
  .object({
    at: timeMs,
    what: z.string(),
    actor: z.string().optional().describe('who did it, where the row says so'),
    reason: z.string().optional().describe('why, or by which evidence'),
    epoch: count.optional().describe('under which epoch of the delivery an attempt was begun'),
  })
  .register(components, { id: 'TimelineEntry' })
/** One step of a delivery's way. @interface */
export type TimelineEntry = View<typeof timelineEntrySchema>

export const deliveryViewSchema = z
  .object({
    id: z.string().describe('`<message>.<n>`'),
    message: z.string(),
    host: z.string(),
    session: z.string().optional(),
    conversation: z.string(),
    state: z.enum(deliveryStates),
    epoch: count,
    owner: z.string().optional(),
    incarnation: count.optional(),
    parkedBy: z.string().optional(),
    reason: z.string().optional().describe('why it is held, failed or unknown'),
    takeovers: count,
    settledAt: timeMs.optional(),
    attempts: z.array(attemptViewSchema),
    timeline: z.array(timelineEntrySchema),
  })
  .register(components, { id: 'Delivery' })
/** A delivery as it stands, with its attempts and its timeline. @interface */
export type DeliveryView = View<typeof deliveryViewSchema>

export const messageViewSchema = z
  .object({
    id: z.string(),
    conversation: z.string(),
    sender: z.string(),
    key: z.string(),
    parent: z.string().optional(),
    resendOf: z.string().optional(),
    contentType: z.string().optional(),
    sha256: z.string(),
    bytes: count,
    recipients: count,
    fanOut: z.enum(['complete', 'pending']),
    acceptedAt: timeMs,
    settledAt: timeMs.optional(),
    deliveries: z.array(deliveryViewSchema),
  })
  .register(components, { id: 'Message' })
/** A message with its deliveries, as they stand. @interface */
export type MessageView = View<typeof messageViewSchema>

export const acceptedDeliverySchema = z.object({
  id: z.string(),
  host: z.string(),
  session: z.string().optional(),
  state: z.enum(deliveryStates),
})
/** A delivery in the answer to accept. @interface */
export type AcceptedDelivery = View<typeof acceptedDeliverySchema>

/** Why a delivery is where it is. */
export const whyReplySchema = z
  .object({
    id: z.string(),
    state: z.enum(deliveryStates),
    reason: z.string(),
    detail: z.string(),
    host: z.string(),
    owner: z.string().optional(),
    epoch: count,
    attempts: count,
  })
  .register(components, { id: 'Why' })
/** Why a delivery is where it is. @interface */
export type WhyReply = View<typeof whyReplySchema>

/** A delivery after an operator's act. */
export const operatorReplySchema = z
  .object({ id: z.string(), state: z.enum(deliveryStates), epoch: count, logId: z.string() })
  .register(components, { id: 'Acted' })
/** A delivery after an operator's act. @interface */
export type OperatorReply = View<typeof operatorReplySchema>

export const heldEntrySchema = z
  .object({
    id: z.string(),
    sinceMs: timeMs,
    reason: z.string(),
    host: z.string(),
    conversation: z.string(),
    attempts: count,
  })
  .register(components, { id: 'HeldEntry' })
/** An entry of the held queue. @interface */
export type HeldEntry = View<typeof heldEntrySchema>

export const unknownEntrySchema = z
  .object({
    id: z.string().describe('the attempt, or the delivery where its copy was in doubt'),
    sinceMs: timeMs,
    reason: z.string(),
    host: z.string(),
    node: z.string().optional(),
    begunAt: timeMs.optional(),
  })
  .register(components, { id: 'UnknownEntry' })
/** An entry of the unknown list. @interface */
export type UnknownEntry = View<typeof unknownEntrySchema>

/** An attempt after an operator's resolution. */
export const attemptResolvedSchema = operatorReplySchema
  .extend({ outcome: z.enum(outcomeKinds) })
  .register(components, { id: 'AttemptResolved' })
/** An attempt after an operator's resolution. @interface */
export type AttemptResolved = View<typeof attemptResolvedSchema>

/** What an operator's act on many did, or would do. */
export const bulkReplySchema = z
  .object({
    matched: count.describe('deliveries of this page that the filter names'),
    done: count.describe('0 for a dry run'),
    refused: z.array(z.object({ id: z.string(), code: z.string(), detail: z.string() })),
    cursor: z.string().optional().describe('there may be more: call again with it'),
  })
  .register(components, { id: 'BulkActed' })
/** What an operator's act on many did, or would do. @interface */
export type BulkReply = View<typeof bulkReplySchema>
