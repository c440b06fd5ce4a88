import { z } from 'zod'
import { effectStatuses } from './effects.js'
import { attemptStatuses, outcomeKinds } from './outcomes.js'
import { roles } from './principals.js'
import { sessionStates } from './sessions.js'
import { deliveryStates } from './states.js'
import { sweepNames } from './sweeps.js'

// What readers of the record are shown, in the SDK and over HTTP alike. Times are Unix ms by the clock of
// Redis, unless a name ends in `AgeMs` or says otherwise.

const timeMs = z.int().nonnegative()
const count = z.int().nonnegative()

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
  .meta({ id: 'Attempt' })
/** One try at executing a delivery, as recorded. @interface */
export type AttemptView = z.infer<typeof attemptViewSchema>

export const timelineEntrySchema = z
  .object({
    at: timeMs,
    what: z.string(),
    actor: z.string().optional().describe('who did it, where the row says so'),
    reason: z.string().optional().describe('why, or by which evidence'),
    epoch: count.optional().describe('under which epoch of the delivery an attempt was begun'),
  })
  .meta({ id: 'TimelineEntry' })
/** One step of a delivery's way. @interface */
export type TimelineEntry = z.infer<typeof timelineEntrySchema>

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
  .meta({ id: 'Delivery' })
/** A delivery as it stands, with its attempts and its timeline. @interface */
export type DeliveryView = z.infer<typeof deliveryViewSchema>

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
  .meta({ id: 'Message' })
/** A message with its deliveries, as they stand. @interface */
export type MessageView = z.infer<typeof messageViewSchema>

export const acceptedDeliverySchema = z.object({
  id: z.string(),
  host: z.string(),
  session: z.string().optional(),
  state: z.enum(deliveryStates),
})
/** A delivery in the answer to accept. @interface */
export type AcceptedDelivery = z.infer<typeof acceptedDeliverySchema>

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
  .meta({ id: 'Why' })
/** Why a delivery is where it is. @interface */
export type WhyReply = z.infer<typeof whyReplySchema>

/** A delivery after an operator's act. */
export const operatorReplySchema = z
  .object({ id: z.string(), state: z.enum(deliveryStates), epoch: count, logId: z.string() })
  .meta({ id: 'Acted' })
/** A delivery after an operator's act. @interface */
export type OperatorReply = z.infer<typeof operatorReplySchema>

export const heldEntrySchema = z
  .object({
    id: z.string(),
    sinceMs: timeMs,
    reason: z.string(),
    host: z.string(),
    conversation: z.string(),
    attempts: count,
  })
  .meta({ id: 'HeldEntry' })
/** An entry of the held queue. @interface */
export type HeldEntry = z.infer<typeof heldEntrySchema>

export const unknownEntrySchema = z
  .object({
    id: z.string().describe('the attempt, or the delivery where its copy was in doubt'),
    sinceMs: timeMs,
    reason: z.string(),
    host: z.string(),
    node: z.string().optional(),
    begunAt: timeMs.optional(),
  })
  .meta({ id: 'UnknownEntry' })
/** An entry of the unknown list. @interface */
export type UnknownEntry = z.infer<typeof unknownEntrySchema>

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
  .meta({ id: 'PendingEntry' })
/** An entry of a pending list of Redis, beside the row it should agree with. @interface */
export type PendingEntry = z.infer<typeof pendingEntrySchema>

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
  .meta({ id: 'Node' })
/** A node, as its last heartbeat told. @interface */
export type NodeView = z.infer<typeof nodeViewSchema>

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
  .meta({ id: 'Host' })
/** A host, its nodes and what waits for it. @interface */
export type HostView = z.infer<typeof hostViewSchema>

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
  .meta({ id: 'Fence' })
/** A fence that stands, or a field of the fences hash that no rule reads. @interface */
export type FenceView = z.infer<typeof fenceViewSchema>

export const fenceReplySchema = z
  .object({
    fence: z.string(),
    logId: z.string(),
    replaced: z.string().optional().describe('the reason that stood there before, as it was written'),
  })
  .meta({ id: 'FenceSet' })
/** A fence after it was set. @interface */
export type FenceReply = z.infer<typeof fenceReplySchema>

export const liftReplySchema = z
  .object({
    fence: z.string(),
    reason: z.string(),
    hostsRung: count,
    left: count.describe('held deliveries that the next claims give back'),
    logId: z.string(),
  })
  .meta({ id: 'FenceLifted' })
/** A fence after it was lifted, and what that gave back. @interface */
export type LiftReply = z.infer<typeof liftReplySchema>

/** A tunable as it works now. */
export const settingViewSchema = z
  .object({
    name: z.string(),
    value: z.number().optional().describe('what the functions use; absent for a field that is no setting'),
    default: z.number().optional(),
    meaning: z.string(),
    set: z.string().optional().describe('the text in the record, where there is one'),
    bad: z.boolean().describe('the text is no value of this setting: the default is used'),
  })
  .meta({ id: 'Setting' })
/** A tunable as it works now. @interface */
export type SettingView = z.infer<typeof settingViewSchema>

/** How a sweep is, as its last run left it. */
export const sweepViewSchema = z
  .object({
    name: z.enum(sweepNames),
    hub: z.string().optional().describe('in a set of hubs: the one that says it'),
    meaning: z.string().describe('what it does'),
    everyMs: count.describe('how often it runs; 0: not by itself'),
    runs: count,
    failures: count.optional(),
    lastRunAt: timeMs.optional(),
    lastSucceededAt: timeMs.optional(),
    ageMs: count.optional().describe('since it last succeeded'),
    late: z.boolean().describe('its last success is older than three intervals'),
    durationMs: count.optional().describe('of the last run'),
    found: count.optional().describe('in the last run: what was not right'),
    repaired: count.optional().describe('of these, put right'),
    left: count.optional().describe('of these, what somebody has to look at'),
    foundTotal: count.optional().describe('in all runs: what was not right'),
    repairedTotal: count.optional().describe('in all runs: what was put right'),
    notes: z.array(z.string()).describe('the first of what was found, with its key or id'),
    unfinished: z.boolean().describe('the last run stopped at its bound; the next goes on there'),
    error: z.string().optional().describe('why the last run failed'),
    by: z.string().optional().describe('the process that ran it'),
  })
  .meta({ id: 'Sweep' })
/** How a sweep is, as its last run left it. @interface */
export type SweepView = z.infer<typeof sweepViewSchema>

/** What one run of a sweep did. */
export const sweepRunSchema = z
  .object({
    name: z.enum(sweepNames),
    hub: z.string().optional().describe('in a set of hubs: the one that says it'),
    found: count.describe('what was not right'),
    repaired: count.describe('of these, put right'),
    left: count.describe('of these, what somebody has to look at'),
    notes: z.array(z.string()).describe('the first of what was found, with its key or id'),
    durationMs: z.number().nonnegative().describe('how long it took'),
    error: z.string().optional().describe('why it failed'),
  })
  .meta({ id: 'SweepRun' })
export type SweepRunView = z.infer<typeof sweepRunSchema>

/** What an audit found. */
export const auditSchema = z
  .object({
    conservation: z
      .object({
        recipients: count.describe('recipients of all messages that were ever accepted'),
        byState: z.record(z.string(), count).describe('deliveries by state'),
        owed: count.describe('deliveries that fan-outs have not made yet'),
        pruned: count.describe('deliveries that went with the retention'),
      })
      .describe('recipients = deliveries by state + owed + pruned'),
    deliveries: count.describe('rows that were looked at'),
    messages: count.describe('rows that were looked at'),
    disagreements: z.array(
      z.object({
        about: z.string().describe('the key or id'),
        what: z.string(),
        look: z.string().describe('a line for the shell that shows it'),
        repaired: z.boolean().describe('it was put right; here always false: a sweep does that'),
      }),
    ),
    more: z.boolean().describe('there are more than are told'),
  })
  .meta({ id: 'Audit' })
/** What an audit found. @interface */
export type AuditView = z.infer<typeof auditSchema>

/** An attempt after an operator's resolution. */
export const attemptResolvedSchema = operatorReplySchema
  .extend({ outcome: z.enum(outcomeKinds) })
  .meta({ id: 'AttemptResolved' })
/** An attempt after an operator's resolution. @interface */
export type AttemptResolved = z.infer<typeof attemptResolvedSchema>

/** A session after a call on it. */
export const sessionReplySchema = z
  .object({
    session: z.string(),
    host: z.string().describe('the host that owns it'),
    scope: z.string(),
    epoch: count.describe('presented by a close'),
    state: z.enum(sessionStates),
    terminal: z.boolean().optional().describe('closed: it will not come back without an operator'),
    reason: z.string().optional().describe('why it was closed'),
    crashes: count.describe('crashes that the restart budget has paid for'),
    restartBudget: count,
    logId: z.string(),
  })
  .meta({ id: 'SessionAnswer' })
/** A session after a call on it. @interface */
export type SessionReply = z.infer<typeof sessionReplySchema>

/** A session as recorded. */
export const sessionViewSchema = z
  .object({
    session: z.string(),
    host: z.string(),
    scope: z.string(),
    epoch: count,
    state: z.enum(sessionStates),
    terminal: z.boolean().optional(),
    reason: z.string().optional(),
    drained: z.boolean().optional(),
    abandoned: count.optional(),
    parent: z.string().optional(),
    crashes: count,
    restartBudget: count,
    openedAt: timeMs.optional(),
    openedBy: z.string().optional(),
    closedAt: timeMs.optional(),
    closedBy: z.string().optional(),
    missingAt: timeMs.optional(),
    missingAttempt: z.string().optional().describe('the attempt that reported it'),
    rehomedAt: timeMs.optional(),
    rehomedFrom: z.string().optional(),
    movingFrom: z.string().optional().describe('its deliveries are still on their way from this host'),
    unfinished: count.describe('deliveries that are not settled'),
  })
  .meta({ id: 'Session' })
/** A session as recorded. @interface */
export type SessionView = z.infer<typeof sessionViewSchema>

/** An effect as recorded; its bodies go with the retention, the rest stays. */
export const effectViewSchema = z
  .object({
    id: z.string(),
    type: z.string(),
    payloadHash: z.string(),
    status: z.enum(effectStatuses),
    executor: z.string(),
    epoch: count,
    claimedAt: timeMs,
    startedAt: timeMs,
    settledAt: timeMs.optional(),
    outcome: z.enum(outcomeKinds).optional(),
    result: z.string().optional().describe('JSON text, byte for byte as it was settled'),
    errorCode: z.string().optional(),
    errorJson: z.string().optional(),
    unknownAt: timeMs.optional(),
    unknownReason: z.string().optional(),
    takeovers: count,
    takenFrom: z.string().optional().describe('`<executor>#<epoch>` of the last take-over'),
    basis: z.string().optional(),
    lateReports: count.optional(),
    resolvedBy: z.string().optional(),
    evidence: z.string().optional(),
    bodiesPrunedAt: timeMs.optional(),
  })
  .meta({ id: 'Effect' })
/** An effect as recorded; its bodies go with the retention, the rest stays. @interface */
export type EffectView = z.infer<typeof effectViewSchema>

/** A principal; never its secrets. */
export const principalViewSchema = z
  .object({
    name: z.string(),
    role: z.enum(roles),
    host: z.string().optional(),
    scopes: z.array(z.string()),
    anySender: z.boolean(),
    credential: z.enum(['token', 'certificate', 'both']),
    certificateSha256: z.string().optional(),
    createdAt: timeMs,
    createdBy: z.string(),
    missing: z
      .array(z.string())
      .optional()
      .describe('in a set of hubs: those that do not let it in, where others do'),
    revokedAt: timeMs.optional(),
    revokedBy: z.string().optional(),
    revokedReason: z.string().optional(),
  })
  .meta({ id: 'Principal' })
/** A principal as recorded: never its secret. @interface */
export type PrincipalView = z.infer<typeof principalViewSchema>

/** What an operator's act on many did, or would do. */
export const bulkReplySchema = z
  .object({
    matched: count.describe('deliveries of this page that the filter names'),
    done: count.describe('0 for a dry run'),
    refused: z.array(z.object({ id: z.string(), code: z.string(), detail: z.string() })),
    cursor: z.string().optional().describe('there may be more: call again with it'),
  })
  .meta({ id: 'BulkActed' })
/** What an operator's act on many did, or would do. @interface */
export type BulkReply = z.infer<typeof bulkReplySchema>
