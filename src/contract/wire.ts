import { z } from 'zod'
import { effectBases, effectStatuses } from './effects.js'
import { errorCatalogue } from './errors.js'
import { isDeliveryId, isHostId, isId, isMessageId, parseAttemptId } from './ids.js'
import { recipientSchema } from './message.js'
import { outcomeKinds } from './outcomes.js'
import { roles } from './principals.js'
import { settings } from './settings.js'
import { deliveryStates } from './states.js'
import { sweepNames } from './sweeps.js'
import {
  acceptedDeliverySchema,
  deliveryViewSchema,
  effectViewSchema,
  fenceViewSchema,
  heldEntrySchema,
  hostViewSchema,
  pendingEntrySchema,
  principalViewSchema,
  settingViewSchema,
  sweepRunSchema,
  sweepViewSchema,
  unknownEntrySchema,
} from './views.js'

// The bodies, queries and answers of the HTTP surface (contract section 10): the one source of validation,
// serialisation, OpenAPI and the client's types. Unknown members of a request are refused.

const idPattern = '^[\\x20-\\x7e]{1,255}$'
const hostPattern = '^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$'

export const id = z
  .string()
  .refine(isId, 'must be 1 to 255 bytes of printable ASCII')
  .meta({ pattern: idPattern, minLength: 1, maxLength: 255 })
export const host = z
  .string()
  .refine(isHostId, 'must match [a-z0-9._-], 1 to 63 long, alphanumeric at both ends')
  .meta({ pattern: hostPattern })
const deliveryId = z.string().refine(isDeliveryId, 'must be a delivery id: <message>.<n>')
const messageId = z.string().refine(isMessageId, 'must be a message id: <ms>-<sequence>')
const attemptId = z
  .string()
  .refine((text) => parseAttemptId(text) !== undefined, 'must be an attempt id: <message>.<n>/<n>')
export const text = z.string().refine((given) => {
  const bytes = Buffer.byteLength(given)
  return bytes >= 1 && bytes <= 1024 && given.isWellFormed()
}, 'must be 1 to 1024 bytes of text')
export const count = z.int().nonnegative()
export const epoch = count
const time = z
  .union([z.int().nonnegative(), z.iso.datetime({ offset: true })])
  .describe('RFC 3339 with an offset, or Unix ms')
  .transform((given) => (typeof given === 'number' ? given : new Date(given).getTime()))
  .refine((ms) => Number.isSafeInteger(ms) && ms >= 0, 'must be a time from 1970 on')
const anyJson = z.unknown().describe('any JSON value; kept as its exact source text')

/** A whole number in a query string. */
function numeric(least: number, most: number) {
  return z
    .string()
    .regex(/^\d{1,15}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.int().min(least).max(most))
}

/** The most milliseconds that a call waits for something. */
export const longestWaitMs = 60_000
/** The most items of one step. */
export const mostItems = 1000

// Parts of the path

export const messageParams = z.object({ id: messageId })
export const deliveryParams = z.object({ id: deliveryId })
export const hostParams = z.object({ host })
export const nodeParams = z.object({ host, node: id })
export const fenceParams = z.object({
  kind: z.enum(['pause', 'hold', 'block']),
  scope: text.describe('hub, host:<h>, conversation:<c> or session:<s>, percent-encoded'),
})
export const principalParams = z.object({ name: id })

// Messages

export const idempotencyHeaders = z.object({
  'idempotency-key': id.describe('the same key is the same message; a retry must send it again'),
})

export const messageBody = z
  .strictObject({
    conversation: id,
    sender: id.optional().describe('the principal when absent; another only where that is allowed'),
    to: z.array(recipientSchema).describe('a recipient named twice is named once'),
    payload: anyJson.optional(),
    payloadBase64: z.base64().optional(),
    contentType: id.optional().describe('media type of payloadBase64'),
    parent: id.optional(),
    deliverBy: time.optional().describe('until when it must be claimed, by the clock of Redis'),
    executeBy: time.optional().describe('until when it must be begun, by the clock of Redis'),
  })
  .meta({ id: 'NewMessage' })

export const resendBody = z.strictObject({
  to: z.array(recipientSchema).optional().describe('the recipients of the first time when absent'),
})

export const acceptedReply = z
  .object({
    id: z.string(),
    deliveries: z.array(acceptedDeliverySchema),
    fanOut: z.enum(['complete', 'pending']),
  })
  .meta({ id: 'Accepted' })

export const waitQuery = z.strictObject({
  waitMs: numeric(0, longestWaitMs).optional().describe('wait this long until all deliveries are settled'),
})

// Deliveries and lists

export const cursor = z.string().max(1000).describe('from the answer before; absent at the end')
const pageMembers = {
  cursor: cursor.optional(),
  limit: numeric(1, 1000).optional().describe('100 when absent'),
}
const liveState = z.enum(deliveryStates).exclude(['failed'])

export const pageQuery = z.strictObject(pageMembers)
export const deliveriesQuery = z.strictObject({
  host: host.optional(),
  state: liveState.optional(),
  ...pageMembers,
})
export const deliveriesReply = z.object({
  deliveries: z.array(deliveryViewSchema),
  cursor: cursor.optional(),
})
export const heldReply = z.object({ held: z.array(heldEntrySchema), cursor: cursor.optional() })
export const unknownReply = z.object({ unknown: z.array(unknownEntrySchema), cursor: cursor.optional() })
export const pendingReply = z.object({ pending: z.array(pendingEntrySchema), cursor: cursor.optional() })
export const hostsReply = z.object({ hosts: z.array(hostViewSchema), cursor: cursor.optional() })
export const countsReply = z.object({ counts: z.record(z.string(), z.number()) })

export const actBody = z.strictObject({ reason: text }).meta({ id: 'Act' })
export const bulkBody = z
  .strictObject({
    filter: z.strictObject({
      state: liveState,
      host: host.optional(),
      conversation: id.optional(),
      session: id.optional(),
      reason: text.optional().describe('the first words of why it is held'),
    }),
    reason: text,
    dryRun: z.boolean().optional().describe('count, and change nothing'),
    cursor: cursor.optional(),
    limit: z.int().min(1).max(1000).optional(),
  })
  .meta({ id: 'BulkAct' })

const wireOutcome = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('result'), result: anyJson.optional() }),
  z.strictObject({ kind: z.literal('terminal'), errorCode: id, errorJson: anyJson.optional() }),
  z.strictObject({ kind: z.literal('not_sent'), errorCode: id, errorJson: anyJson.optional() }),
  z.strictObject({ kind: z.literal('outcome_unknown'), errorCode: id, errorJson: anyJson.optional() }),
])

// Effects

const payloadHash = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 digest in lower-case hex')
  .describe('SHA-256 of what the caller means, lower-case hex')
const grant = id
  .refine((word) => !word.includes(' '), 'must hold no blanks')
  .describe('a nonce, minted for this one try')
const executor = id.describe('who executes: a stable name, the same after a restart')
const timeLimitMs = z.int().min(1).optional().describe('nobody takes the effect over earlier')

export const attemptParams = z.object({ id: attemptId })

export const effectParams = z.object({ id })
export const effectsQuery = z.strictObject({
  executing: z
    .enum(['true', 'false'])
    .optional()
    .describe('only those that are executing, the longest first'),
  ...pageMembers,
})
export const effectsReply = z.object({ effects: z.array(effectViewSchema), cursor: cursor.optional() })
export const effectClaimBody = z
  .strictObject({ type: id.describe('what kind of action it is'), payloadHash, executor, grant, timeLimitMs })
  .meta({ id: 'EffectClaim' })
export const effectTakeOverBody = z
  .strictObject({
    payloadHash,
    executor,
    grant,
    basis: z.enum(effectBases).describe('probe: the target can be asked; idempotent: twice is as once'),
    epoch: count.describe('of the row as it was last seen'),
    startedAt: z.int().nonnegative().describe('of the row as it was last seen'),
    timeLimitMs,
  })
  .meta({ id: 'EffectTakeOver' })
const open = {
  epoch: count,
  startedAt: z.int().describe('Unix ms by the clock of Redis'),
}
export const effectClaimedReply = z
  .object({ kind: z.literal('claimed'), ...open })
  .meta({ id: 'EffectClaimed' })
export const effectAnswer = z
  .discriminatedUnion('kind', [
    effectClaimedReply,
    z.object({
      kind: z.literal('result'),
      result: z.string().describe('JSON text, byte for byte as it was settled'),
      epoch: count,
    }),
    z.object({
      kind: z.literal('terminal'),
      errorCode: z.string(),
      errorJson: z.string().optional(),
      epoch: count,
    }),
    z.object({
      kind: z.literal('outcome_unknown'),
      ...open,
      executor: z.string(),
      ageMs: z.int().describe('since it was claimed'),
    }),
  ])
  .meta({ id: 'EffectAnswer' })
export const effectSettledReply = z
  .object({
    kind: z.literal('settled'),
    outcome: z.enum(outcomeKinds).describe('as recorded'),
    status: z.enum(effectStatuses),
    epoch: count,
  })
  .meta({ id: 'EffectSettled' })
export const effectSettleBody = z
  .strictObject({ executor, grant, epoch: count.describe('as the claim answered it'), outcome: wireOutcome })
  .meta({ id: 'EffectSettlement' })
export const resolveBody = z
  .strictObject({
    as: z.enum(['result', 'terminal', 'not_sent']),
    evidence: text.describe('how it is known'),
    force: z.boolean().optional().describe('also while its executor may live'),
    result: anyJson.optional(),
  })
  .meta({ id: 'Resolution' })

// Fences, hosts, settings, principals

export const fenceBody = z.strictObject({ reason: text, until: time.optional() }).meta({ id: 'NewFence' })
export const fencesReply = z.object({ fences: z.array(fenceViewSchema) })

const names = Object.keys(settings) as [keyof typeof settings, ...(keyof typeof settings)[]]
export const settingsBody = z
  .partialRecord(z.enum(names), z.int().nonnegative())
  .describe('all of them are changed, or none')
export const settingsReply = z.object({ settings: z.array(settingViewSchema) })

export const principalBody = z
  .strictObject({
    name: id,
    role: z.enum(roles),
    host: host.optional().describe('for a node: the one host it serves'),
    scopes: z.array(text).optional().describe('for a node: directories of the sessions it may serve'),
    anySender: z.boolean().optional().describe('for a producer: it may name other senders than itself'),
    certificate: z.string().optional().describe('PEM of a client certificate to pin, instead of a token'),
  })
  .meta({ id: 'NewPrincipal' })
export const principalReply = z.object({
  principal: principalViewSchema,
  token: z.string().optional().describe('shown this once'),
})
export const principalsReply = z.object({ principals: z.array(principalViewSchema) })

// Nodes

export const joinBody = z
  .strictObject({
    incarnation: z.int().min(1),
    instance: id.describe('random, made once an incarnation'),
    scopes: z.array(text).optional(),
    lastLogId: z.string().max(64).optional().describe('the last log id this node saw'),
  })
  .meta({ id: 'Join' })
export const joinReply = z
  .object({
    now: z.int(),
    logId: z.string(),
    config: z.object({
      heartbeatMs: count,
      staleAfterMs: count,
      maxResultBytes: count,
      maxRedrive: count,
    }),
    storeId: z.string(),
    generation: count,
    badSettings: z.array(z.string()).describe('settings whose values are bad: defaults are used'),
  })
  .meta({ id: 'Joined' })

const figures = { sumMs: z.number().nonnegative(), longestMs: z.number().nonnegative() }
export const heartbeatBody = z
  .strictObject({
    incarnation: z.int().min(1),
    lastLogId: z.string().max(64).optional(),
    progress: z.number().nonnegative().optional().describe('ms since the work loop last made progress'),
    blocking: z.strictObject(figures).optional().describe('what held the event loop since the last beat'),
    mirror: z
      .strictObject({ commits: count, ...figures })
      .optional()
      .describe('what commits of the mirror took since the last beat'),
  })
  .meta({ id: 'Heartbeat' })
export const heartbeatReply = z
  .object({ now: z.int(), logId: z.string(), heartbeatMs: count, staleAfterMs: count })
  .meta({ id: 'HeartbeatAnswer' })
export const leaveQuery = z.strictObject({ incarnation: numeric(1, Number.MAX_SAFE_INTEGER) })

const speaker = { node: id, incarnation: z.int().min(1) }

export const claimBody = z
  .strictObject({
    ...speaker,
    request: z.int().min(1).describe('grows within an incarnation; the same until it is answered'),
    count: z.int().min(1).max(mostItems).default(1),
    waitMs: z.int().min(0).max(longestWaitMs).default(0).describe('wait this long for something to claim'),
    payloads: z
      .enum(['json', 'base64'])
      .default('json')
      .describe('json: a payload sent as JSON comes as `payload`; base64: all come as `payloadBase64`'),
  })
  .meta({ id: 'Claim' })

export const claimedSchema = z.object({
  id: z.string(),
  epoch,
  state: z.enum(deliveryStates),
  takeover: z.boolean().describe('taken from another node of the host'),
  how: z.enum(['new', 'parked', 'resume', 'takeover']),
  attempts: count.describe('attempts begun so far; 0 is proof that nothing ran'),
  session: z.string().optional(),
  sessionEpoch: epoch.optional().describe("the session's epoch, when it was claimed"),
  message: z.object({
    id: z.string(),
    conversation: z.string(),
    sender: z.string(),
    parent: z.string().optional(),
    contentType: z.string().optional(),
    payload: z.unknown().optional().describe('the exact source text that was sent'),
    payloadBase64: z.string().optional(),
    sha256: z.string().describe('of the payload bytes, lower-case hex'),
  }),
})
export const claimReply = z
  .object({
    logId: z.string(),
    now: z.int(),
    more: z.boolean().describe('there is more to look at: claim again at once'),
    nextAtMs: z.int().optional().describe('Unix ms at which something may become runnable by itself'),
    ghosts: z.array(z.string()).describe('pending entries that the stream no longer held; told once'),
    missing: z.array(z.string()).describe('ids whose rows are missing'),
    deliveries: z.array(claimedSchema),
  })
  .meta({ id: 'Claimed' })

const item = { id: deliveryId, epoch }
const batch = <Item extends z.ZodType>(schema: Item) => z.array(schema).min(1).max(mostItems)

export const stepBody = z
  .strictObject({ ...speaker, items: batch(z.strictObject(item)) })
  .meta({ id: 'Step' })
export const refuseBody = z
  .strictObject({
    ...speaker,
    items: batch(
      z.strictObject({
        ...item,
        verdict: z.enum(['failed', 'unknown']),
        reason: id.describe('`payload_corrupt` holds it; any other word says why'),
      }),
    ),
  })
  .meta({ id: 'Refuse' })
export const beginBody = z
  .strictObject({
    ...speaker,
    items: batch(
      z.strictObject({
        ...item,
        grant: id,
        idempotent: z
          .boolean()
          .optional()
          .describe('begin again, under the same grant, what an earlier process of this node began'),
      }),
    ),
  })
  .meta({ id: 'Begin' })

export const reportBody = z
  .strictObject({
    host,
    ...speaker,
    reports: batch(
      z
        .strictObject({
          attempt: attemptId.optional(),
          delivery: deliveryId.optional().describe('where the number of the attempt was never learned'),
          grant: id,
          key: id
            .refine((word) => !word.includes(' '), 'must hold no blanks')
            .describe('one a report: the same for every repeat of it'),
          outcome: wireOutcome,
          ended: z
            .boolean()
            .optional()
            .describe('beside outcome_unknown: the executor has ended, nothing of the attempt runs any more'),
        })
        .refine(({ attempt, delivery }) => (attempt === undefined) !== (delivery === undefined), {
          error: 'names either attempt or delivery',
        }),
    ),
  })
  .meta({ id: 'Report' })

export const stepResult = z
  .object({
    id: z.string(),
    ok: z.boolean(),
    epoch: epoch.optional(),
    state: z.enum(deliveryStates).optional(),
    attempt: z.string().optional().describe('begin, report: the attempt, `<delivery>/<n>`'),
    outcome: z.enum(outcomeKinds).optional().describe('report: what is recorded'),
    replay: z
      .boolean()
      .optional()
      .describe(
        'report: answered as the first time; begin with `idempotent`: it was begun before, by an earlier process',
      ),
    code: z.string().optional().describe('why it was refused'),
    owner: z.string().optional(),
    detail: z.string().optional(),
    next: z.string().optional(),
  })
  .meta({ id: 'StepResult' })
export const stepReply = z
  .object({ results: z.array(stepResult), logId: z.string().optional() })
  .meta({ id: 'StepResults' })

// Sweeps

export const sweepParams = z.object({
  name: z.enum(['all', ...sweepNames]).describe('a sweep, or `all`'),
})
export const sweepsReply = z.object({ sweeps: z.array(sweepViewSchema) })
export const sweepRunsReply = z.object({ runs: z.array(sweepRunSchema) })

// Events, health, problems

export const eventsQuery = z.strictObject({
  lastEventId: z.string().max(64).optional().describe('as the header Last-Event-ID'),
})
export const eventSchema = z
  .object({
    at: z.int().describe('Unix ms'),
    verb: z.string(),
    actor: z.string(),
    changes: z.array(z.object({ ids: z.array(z.string()), from: z.string(), to: z.string() })),
    hosts: z.union([z.array(z.string()), z.literal('*')]),
    details: z.record(z.string(), z.string()),
  })
  .meta({ id: 'Event' })

export const readyReply = z
  .object({
    ready: z.boolean(),
    checks: z.record(
      z.string(),
      z.object({ ok: z.boolean(), ageMs: z.number().optional(), why: z.string().optional() }),
    ),
  })
  .meta({ id: 'Readiness' })

export const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.string().describe(`one of ${Object.keys(errorCatalogue).length} codes, see docs/errors.md`),
    detail: z.string(),
    next: z.string().describe('what to do about it'),
    pointer: z.string().optional().describe('JSON pointer to what is wrong; `#/…` in the body'),
    current: z.unknown().optional().describe('the value that was given, or that stands'),
    errors: z
      .array(z.object({ pointer: z.string(), detail: z.string(), current: z.unknown().optional() }))
      .optional(),
    requestId: z.string().optional(),
  })
  .meta({ id: 'Problem' })
export type Problem = z.infer<typeof problemSchema>
