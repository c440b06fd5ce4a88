import { isUtf8 } from 'node:buffer'
import type { FastifyReply } from 'fastify'
import type { z } from 'zod'
import { messageViewSchema } from '../../contract/delivery-views.js'
import type { Accepted } from '../../contract/hub.js'
import type { View } from '../../contract/view-parts.js'
import {
  acceptedReply,
  idempotencyHeaders,
  messageBody,
  messageParams,
  resendBody,
  waitQuery,
} from '../../contract/wire.js'
import { access, requireSender, requireStanding, senderOf } from '../access.js'
import { callSignal } from '../ends.js'
import type { BodyLimit, ListLimit } from '../json-bodies.js'
import type { Limits } from '../limits.js'
import { problem } from '../problem.js'
import type { Pulse } from '../pulse.js'
import { addMessageLists } from './message-lists.js'
import { type App, type RouteParts, replies } from './parts.js'

const accepted = replies({
  200: acceptedReply.describe('accepted before, under this key'),
  201: acceptedReply.describe('accepted'),
})

export interface MessageParts extends RouteParts {
  readonly limits: Limits
  readonly pulse: Pulse
}

/** Bytes that a recipient takes at most: its id with every character escaped, and JSON around it. */
const recipientBytes = 600
/** Everything of a message that is neither payload nor recipient. */
const otherBytes = 64 * 1024

/** No body over it holds a message that would be accepted: a payload takes a third more as base64. */
function payloadLimitOf({ maxPayloadBytes, maxRecipients }: Pulse): BodyLimit {
  const bytes = Math.ceil((maxPayloadBytes * 4) / 3) + recipientBytes * maxRecipients + otherBytes
  const detail = `the body is over ${bytes} bytes, and max_payload_bytes is ${maxPayloadBytes}`
  return { bytes, refusal: () => problem('PAYLOAD_TOO_LARGE', detail) }
}

/** Named twice is named once; the exact number is counted by the record. */
function listLimitOf({ maxRecipients }: Pulse): ListLimit {
  return { most: 2 * maxRecipients, code: 'TOO_MANY_RECIPIENTS' }
}

/** Messages: accept, look at, wait for, send again. */
export function addMessageRoutes(app: App, parts: MessageParts): void {
  addMessageLists(app, parts)
  const { hub, closing, limits } = parts
  const producing = {
    access: access.producers,
    payloadLimit: () => payloadLimitOf(parts.pulse),
    listLimit: () => listLimitOf(parts.pulse),
  }
  app.post(
    '/v1/messages',
    {
      bodyLimit: limits.bodyBytes,
      config: producing,
      schema: {
        operationId: 'acceptMessage',
        summary: 'Accept a message: once this answers, nothing of it can be lost',
        tags: ['messages'],
        headers: idempotencyHeaders,
        body: messageBody,
        response: accepted,
      },
    },
    async (request, reply) => {
      const { body } = request
      const sender = senderOf(request.caller, body.sender)
      const { payload, contentType } = payloadOf(body, request.source?.textAt(['payload']))
      const answer = await hub.accept({
        key: request.headers['idempotency-key'],
        conversation: body.conversation,
        sender,
        to: body.to,
        payload,
        contentType,
        parent: body.parent,
        deliverBy: body.deliverBy,
        executeBy: body.executeBy,
      })
      return acceptedAnswer(reply, answer)
    },
  )

  app.post(
    '/v1/messages/:id/resend',
    {
      bodyLimit: limits.bodyBytes,
      config: producing,
      schema: {
        operationId: 'resendMessage',
        summary: 'The same payload as a new message, with a link to the first',
        tags: ['messages'],
        params: messageParams,
        headers: idempotencyHeaders,
        body: resendBody.nullish(),
        response: accepted,
      },
    },
    async (request, reply) => {
      const { id } = request.params
      if (request.caller.role === 'producer') requireSender(request.caller, (await hub.message(id)).sender)
      const to = request.body?.to
      const key = request.headers['idempotency-key']
      return acceptedAnswer(reply, await hub.resend(id, to === undefined ? { key } : { key, to }))
    },
  )

  app.get(
    '/v1/messages/:id',
    {
      config: { access: access.messages, waits: true },
      schema: {
        operationId: 'getMessage',
        summary: 'A message with its deliveries and their outcomes; waits for them when asked',
        tags: ['messages'],
        params: messageParams,
        querystring: waitQuery,
        response: replies({ 200: messageViewSchema }),
      },
    },
    async (request, reply) => {
      const { id } = request.params
      const waitMs = request.query.waitMs ?? 0
      if (waitMs === 0 || request.caller.role === 'producer') {
        const view = await hub.message(id)
        requireSender(request.caller, view.sender)
        if (waitMs === 0 || view.settledAt !== undefined) return view
      }
      const view = await hub.waitFor(id, waitMs, callSignal(request, reply, closing))
      requireStanding(request.caller)
      return view
    },
  )
}

/** Created, or found under its key. The same body either way. */
function acceptedAnswer(
  reply: FastifyReply,
  { id, deliveries, fanOut, replayed }: Accepted,
): View<typeof acceptedReply> {
  if (replayed) reply.header('idempotency-replayed', 'true')
  reply.code(replayed ? 200 : 201)
  return { id, deliveries, fanOut }
}

/** A JSON payload is its exact source text; everything else comes as base64. @throws INVALID_ARGUMENT */
function payloadOf(
  body: z.output<typeof messageBody>,
  source: Buffer | undefined,
): { payload: Buffer; contentType: string | undefined } {
  const { payloadBase64, contentType } = body
  if ((source === undefined) === (payloadBase64 === undefined)) {
    throw problem('INVALID_ARGUMENT', 'either #/payload or #/payloadBase64 is required', {
      pointer: '#/payload',
    })
  }
  if (payloadBase64 !== undefined) return { payload: Buffer.from(payloadBase64, 'base64'), contentType }
  if (contentType !== undefined && contentType !== jsonType) {
    throw problem('INVALID_ARGUMENT', '#/contentType belongs to payloadBase64: a payload member is JSON', {
      pointer: '#/contentType',
      current: contentType,
    })
  }
  return { payload: source ?? Buffer.alloc(0), contentType: jsonType }
}

const jsonType = 'application/json'

/** Whether a payload can stand in a JSON answer as it is. */
export function isJsonPayload(contentType: string | undefined, payload: Buffer): boolean {
  if (contentType !== jsonType || !isUtf8(payload)) return false
  try {
    JSON.parse(payload.toString('utf8'))
    return true
  } catch {
    return false
  }
}
