import type { FastifyReply } from 'fastify'
import type { ClaimedDelivery, ClaimReply, NodeIdentity } from '../../contract/steps.js'
import { hostParams } from '../../contract/wire.js'
import { claimBody, claimReply } from '../../contract/wire-nodes.js'
import { access, requireHost, requireStanding } from '../access.js'
import { callSignal } from '../ends.js'
import type { Caller } from '../identities.js'
import { isJsonPayload } from './messages.js'
import { type App, type RouteParts, replies } from './parts.js'

/** Where the log is not read in time, a waiting claim looks by itself. */
const tailTrustedMs = 3000
const lookAgainMs = 1000

/** Claim: what a node may take on next; waits for it when asked. */
export function addClaimRoute(app: App, parts: RouteParts): void {
  const { closing } = parts
  app.post(
    '/v1/hosts/:host/claim',
    {
      config: { access: access.nodes, waits: true },
      schema: {
        operationId: 'claim',
        summary: 'Claim deliveries: a repeated request answers the same ones again',
        tags: ['nodes'],
        params: hostParams,
        body: claimBody,
        response: replies({ 200: claimReply }),
      },
    },
    async (request, reply) => {
      const { host } = request.params
      const { node, incarnation, waitMs, payloads, ...claim } = request.body
      requireHost(request.caller, host)
      const signal = callSignal(request, reply, closing)
      const who = { host, node, incarnation }
      const answer = await claimWaiting(parts, who, claim, { waitMs, signal, caller: request.caller })
      requireStanding(request.caller)
      return sendText(reply, claimText(answer, payloads))
    },
  )
}

/** Sends JSON text as it is. */
function sendText(reply: FastifyReply, text: string): FastifyReply {
  return reply
    .type('application/json; charset=utf-8')
    .serializer((given: unknown) => String(given))
    .send(text)
}

interface Waiting {
  readonly waitMs: number
  readonly signal: AbortSignal
  readonly caller: Caller
}

/**
 * Claims; where there is nothing, waits for the log to name the host and claims again. The request stays
 * unanswered in the record until this answers: a client that is gone, or asks another hub, loses nothing.
 */
async function claimWaiting(
  { functions, tail, closing }: RouteParts,
  who: NodeIdentity,
  { request, count }: { readonly request: number; readonly count: number },
  { waitMs, signal, caller }: Waiting,
): Promise<ClaimReply> {
  const deadlineAt = performance.now() + waitMs
  const ghosts: string[] = []
  const missing: string[] = []
  for (;;) {
    requireStanding(caller)
    const leftMs = deadlineAt - performance.now()
    const last = leftMs <= 0 || closing.aborted
    const reply = await functions.claim(who, request, count, { openIfEmpty: !last })
    ghosts.push(...reply.ghosts)
    missing.push(...reply.missing)
    const over = last || reply.again || reply.deliveries.length > 0 || (signal.aborted && !closing.aborted)
    if (over) return { ...reply, ghosts, missing }
    if (reply.more) continue
    const untilNextMs = (reply.nextAtMs ?? Number.POSITIVE_INFINITY) - reply.nowMs
    const trustedMs = tail.ageMs() > tailTrustedMs ? lookAgainMs : Number.POSITIVE_INFINITY
    const pauseMs = Math.max(1, Math.min(leftMs, untilNextMs, trustedMs))
    await tail.wait(`host:${who.host}`, reply.logId, pauseMs, signal)
    if (signal.aborted && !closing.aborted && !caller.signal.aborted) return { ...reply, ghosts, missing }
  }
}

/** The answer as JSON text: a payload that is JSON stands in it byte for byte. */
function claimText(reply: ClaimReply, payloads: 'json' | 'base64'): string {
  const { logId, nowMs: now, more, nextAtMs, ghosts, missing, deliveries } = reply
  const head = JSON.stringify({
    logId,
    now,
    more,
    ...(nextAtMs === undefined ? {} : { nextAtMs }),
    ghosts,
    missing,
  })
  const items = deliveries.map((delivery) => deliveryText(delivery, payloads))
  return `${head.slice(0, -1)},"deliveries":[${items.join(',')}]}`
}

function deliveryText(delivery: ClaimedDelivery, payloads: 'json' | 'base64'): string {
  const { id, epoch, state, how, attempts, session, sessionEpoch, message, payload } = delivery
  const embeds = payloads === 'json' && isJsonPayload(message.contentType, payload)
  const bytes = embeds
    ? `"payload":${payload.toString('utf8')}`
    : `"payloadBase64":"${payload.toString('base64')}"`
  const takeover = how === 'takeover'
  const head = JSON.stringify({ id, epoch, state, takeover, how, attempts, session, sessionEpoch })
  return `${head.slice(0, -1)},"message":${JSON.stringify(message).slice(0, -1)},${bytes}}}`
}
