import { z } from 'zod'
import { components } from './components.js'
import {
  acceptedDeliverySchema,
  deliveryViewSchema,
  heldEntrySchema,
  unknownEntrySchema,
} from './delivery-views.js'
import { errorCatalogue } from './errors.js'
import { fenceViewSchema, hostViewSchema, pendingEntrySchema } from './host-views.js'
import { hostConcerns } from './hub.js'
import { recipientSchema } from './message.js'
import { messageHeadSchema } from './overview.js'
import { principalViewSchema } from './principal-views.js'
import { roles } from './principals.js'
import { settings } from './settings.js'
import { deliveryStates } from './states.js'
import { sweepNames } from './sweeps.js'
import { settingViewSchema, sweepRunSchema, sweepViewSchema } from './upkeep-views.js'
import type { View } from './view-parts.js'
import {
  anyJson,
  cursor,
  deliveryId,
  host,
  id,
  longestWaitMs,
  messageId,
  numeric,
  pageMembers,
  text,
  time,
} from './wire-parts.js'

// The bodies, queries and answers of the HTTP surface (contract section 10): the one source of validation,
// serialisation, OpenAPI and the client's types. Unknown members of a request are refused. Those of effects, nodes,
// sessions, the log and whoever is logged in are in the files `wire-*.ts` beside this one.

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
    to: z
      .array(recipientSchema)
      .describe('one named twice is named once; an empty list is accepted, and settled at once'),
    payload: anyJson.optional(),
    payloadBase64: z.base64().optional(),
    contentType: id.optional().describe('media type of payloadBase64'),
    parent: id.optional(),
    deliverBy: time.optional().describe('until when it must be claimed, by the clock of Redis'),
    executeBy: time.optional().describe('until when it must be begun, by the clock of Redis'),
  })
  .register(components, { id: 'NewMessage' })

export const resendBody = z.strictObject({
  to: z.array(recipientSchema).optional().describe('the recipients of the first time when absent'),
})

export const acceptedReply = z
  .object({
    id: z.string(),
    deliveries: z.array(acceptedDeliverySchema),
    fanOut: z.enum(['complete', 'pending']),
  })
  .register(components, { id: 'Accepted' })

export const waitQuery = z.strictObject({
  waitMs: numeric(0, longestWaitMs).optional().describe('wait this long until all deliveries are settled'),
})

export const messagesQuery = z.strictObject({
  id: messageId.optional().describe('this one, of whatever age; an empty list where there is none'),
  key: id.optional().describe('the one that was accepted under this idempotency key, of whatever age'),
  conversation: id.optional(),
  sender: id.optional().describe('who sent them; for a producer itself'),
  ...pageMembers,
})
export const messagesReply = z.object({
  messages: z.array(messageHeadSchema).describe('the newest first'),
  cursor: cursor.optional(),
})

// Deliveries and lists

const liveState = z.enum(deliveryStates).exclude(['failed'])

export const pageQuery = z.strictObject(pageMembers)
export const hostsQuery = z.strictObject({
  only: z
    .enum(hostConcerns)
    .optional()
    .describe('stranded: with work and no live node; silent: with a node that has not left and is not heard'),
  ...pageMembers,
})
export const deliveriesQuery = z.strictObject({
  host: host.optional(),
  state: liveState.optional(),
  conversation: id.optional().describe('those of this conversation'),
  session: id.optional().describe('those of this session'),
  message: messageId.optional().describe('all of this message, in every state, by number'),
  reason: text.optional().describe('the first words of why it is held or in doubt'),
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

export const actBody = z.strictObject({ reason: text }).register(components, { id: 'Act' })
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
  .register(components, { id: 'BulkAct' })

// Fences, hosts, settings, principals

export const fenceBody = z
  .strictObject({ reason: text, until: time.optional() })
  .register(components, { id: 'NewFence' })
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
    tokenSha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 digest in lower-case hex')
      .optional()
      .describe('SHA-256 of a token that exists already, lower-case hex: none is made'),
  })
  .register(components, { id: 'NewPrincipal' })
export const principalReply = z.object({
  principal: principalViewSchema,
  token: z.string().optional().describe('shown this once'),
})
export const principalsReply = z.object({ principals: z.array(principalViewSchema) })

// Sweeps

export const sweepParams = z.object({
  name: z.enum(['all', ...sweepNames]).describe('a sweep, or `all`'),
})
export const sweepsReply = z.object({ sweeps: z.array(sweepViewSchema) })
export const sweepRunsReply = z.object({ runs: z.array(sweepRunSchema) })

// Health, problems

export const readyReply = z
  .object({
    ready: z.boolean(),
    checks: z.record(
      z.string(),
      z.object({ ok: z.boolean(), ageMs: z.number().optional(), why: z.string().optional() }),
    ),
  })
  .register(components, { id: 'Readiness' })

/** At the root of a server of several hubs. */
export const hubsReply = z.object({ hubs: z.array(z.string()) })
export const setReadyReply = z.object({
  ready: z.boolean().describe('every hub is'),
  notReady: z.array(z.string()).describe('the hubs that are not'),
  hubs: z.record(z.string(), readyReply),
})

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
  .register(components, { id: 'Problem' })
export type Problem = View<typeof problemSchema>
