import { z } from 'zod'
import { components } from './components.js'
import { outcomeKinds } from './outcomes.js'
import { deliveryStates } from './states.js'
import { count } from './view-parts.js'
import {
  attemptId,
  deliveryId,
  epoch,
  host,
  id,
  logId,
  longestWaitMs,
  mostItems,
  numeric,
  text,
  wireOutcome,
} from './wire-parts.js'

// Bodies and answers of nodes, over HTTP.

export const joinBody = z
  .strictObject({
    incarnation: z.int().min(1),
    instance: id.describe('random, made once an incarnation'),
    scopes: z.array(text).optional(),
    lastLogId: logId.optional().describe('the last log id this node saw'),
  })
  .register(components, { id: 'Join' })
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
  .register(components, { id: 'Joined' })

const figures = { sumMs: z.number().nonnegative(), longestMs: z.number().nonnegative() }
export const heartbeatBody = z
  .strictObject({
    incarnation: z.int().min(1),
    lastLogId: logId.optional(),
    progress: z.number().nonnegative().optional().describe('ms since the work loop last made progress'),
    blocking: z.strictObject(figures).optional().describe('what held the event loop since the last beat'),
    mirror: z
      .strictObject({ commits: count, ...figures })
      .optional()
      .describe('what commits of the mirror took since the last beat'),
  })
  .register(components, { id: 'Heartbeat' })
export const heartbeatReply = z
  .object({ now: z.int(), logId: z.string(), heartbeatMs: count, staleAfterMs: count })
  .register(components, { id: 'HeartbeatAnswer' })
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
  .register(components, { id: 'Claim' })

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
  .register(components, { id: 'Claimed' })

const item = { id: deliveryId, epoch }
const batch = <Item extends z.ZodType>(schema: Item) => z.array(schema).min(1).max(mostItems)

export const stepBody = z
  .strictObject({ ...speaker, items: batch(z.strictObject(item)) })
  .register(components, { id: 'Step' })
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
  .register(components, { id: 'Refuse' })
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
  .register(components, { id: 'Begin' })

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
  .register(components, { id: 'Report' })

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
  .register(components, { id: 'StepResult' })
export const stepReply = z
  .object({ results: z.array(stepResult), logId: z.string().optional() })
  .register(components, { id: 'StepResults' })
