// @ts-check
// The payment service. POST /orders/ID/payment {card, cents} charges a card at the gateway, at most once for an order: the
// effect is called after the order, and the gateway gets the effect's id as its idempotency key.
// Its arguments: URL of Redis, URL of the gateway.
import { createServer } from 'node:http'
import { createEffects, isHoldfastError, notSent, openHub, terminal } from 'holdfast'

const [redis = '', gateway = ''] = process.argv.slice(2)
// Short times, so that the example is short: nobody takes an open charge over within the larger of both.
const timeLimitMs = 1500
const recoveryAgeMs = 500

const hub = await openHub({ redis })
const effects = createEffects(hub, { executor: 'payments', recoveryAgeMs })

/**
 * @typedef {import('holdfast').EffectAttempt} EffectAttempt
 * @typedef {{charge: string, cents: number}} Charge
 */

/**
 * @param {EffectAttempt} effect @param {unknown} payment
 * @returns {Promise<Charge | import('holdfast').NotSent | import('holdfast').Terminal>}
 */
async function charge(effect, payment) {
  if (!effect.isFresh()) return notSent('too_late')
  const reply = await fetch(`${gateway}/charges`, {
    method: 'POST',
    headers: { 'idempotency-key': effect.id, epoch: String(effect.epoch) },
    body: JSON.stringify(payment),
    signal: effect.signal,
  }).catch((error) => {
    if (error.cause?.code === 'ECONNREFUSED') return undefined // no connection: not a byte has left
    throw error // anything else may have charged
  })
  if (reply === undefined) return notSent('gateway_away')
  if (reply.status === 429) return notSent('gateway_busy') // refused before anything began
  if (reply.status === 402) return terminal('card_declined')
  if (reply.status === 201) return /** @type {Promise<Charge>} */ (reply.json())
  throw new Error(`the gateway answered ${reply.status}`)
}

/**
 * What became of a charge that this service, or one before it, left open. It is asked under the new epoch: from then on
 * the gateway refuses older ones, so "nothing" means "has not and will not".
 * @param {EffectAttempt} effect
 * @returns {Promise<import('holdfast').ProbeAnswer>}
 */
async function whatBecameOf({ id, epoch, signal }) {
  const headers = { epoch: String(epoch) }
  const reply = await fetch(`${gateway}/charges/${encodeURIComponent(id)}`, { headers, signal })
  if (reply.status === 201) return { kind: 'result', value: await reply.json() }
  if (reply.status === 402) return terminal('card_declined')
  return { kind: reply.status === 404 ? 'not_executed' : 'unknown' }
}

/** Status and body for the service's caller: on 503 it asks again. @param {string} order @param {unknown} payment */
async function pay(order, payment) {
  try {
    const request = {
      id: `${order}/charge`,
      type: 'charge',
      payload: payment,
      timeLimitMs,
      probe: whatBecameOf,
    }
    const outcome = await effects.run(request, (effect) => charge(effect, payment))
    if (outcome.kind === 'result') return { status: 200, body: outcome.value }
    if (outcome.kind === 'terminal') return { status: 402, body: { error: outcome.errorCode } }
    return { status: 503, body: { error: outcome.kind } }
  } catch (error) {
    if (isHoldfastError(error, 'PAYLOAD_MISMATCH')) return { status: 409, body: { error: error.code } }
    return { status: 503, body: { error: 'outcome_unknown' } }
  }
}

const server = createServer(async (request, response) => {
  const [, order] = /^\/orders\/([^/]+)\/payment$/.exec(request.url ?? '') ?? []
  if (request.method !== 'POST' || order === undefined) return void response.writeHead(404).end()
  let text = ''
  for await (const chunk of request) text += chunk
  const { status, body } = await pay(order, JSON.parse(text))
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
})

server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  process.stdout.write(`http://127.0.0.1:${port}\n`)
})
process.once('SIGTERM', async () => {
  server.close()
  server.closeAllConnections()
  await hub.close()
  process.exit(0)
})
