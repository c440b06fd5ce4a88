// @ts-check
// The receivers of the webhooks: plain HTTP servers that know nothing of Holdfast but its headers. Each keeps a log by
// the idempotency key that it was passed: a key that it knows gets the first answer, and nothing is done again.
import { createServer } from 'node:http'

/**
 * @typedef {import('node:http').IncomingHttpHeaders} Headers
 *
 * @typedef {object} Manners how a receiver is
 * @property {() => {status: number, headers?: Record<string, string>} | undefined} [refuses] before anything is done
 * @property {(requests: readonly Headers[]) => Promise<object>} [works] what it does, and answers when that is done
 * @property {boolean} [hangsUp] it drops the connection where its answer should be
 */

/** @param {Manners} manners */
export async function openReceiver({ refuses, works = async () => ({ taken: true }), hangsUp = false }) {
  /** What it did, by the key that it did it under. @type {Map<string, Promise<object>>} */
  const log = new Map()
  /** The deliveries that it worked for, each as often as it did. @type {string[]} */
  const worked = []
  /** Of every request, in the order they came. @type {Headers[]} */
  const requests = []

  const server = createServer(async (request, response) => {
    const { headers } = request
    for await (const _ of request); // the payload; to have it is enough here
    requests.push(headers)
    const refusal = refuses?.()
    if (refusal !== undefined) return void response.writeHead(refusal.status, refusal.headers).end()

    const key = String(headers['idempotency-key'])
    const answer = log.get(key) ?? work(headers)
    log.set(key, answer)
    const body = await answer.then(JSON.stringify, () => undefined)
    if (hangsUp || body === undefined) return void request.socket.destroy()
    response.writeHead(200, { 'content-type': 'application/json' }).end(body)
  })

  /** @param {Headers} headers */
  function work(headers) {
    worked.push(String(headers['holdfast-delivery']))
    return works(requests)
  }

  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${port}/hook`, log, worked, requests, close }
}

/** Turns the first request away. A bare 503 would leave open whether it had begun; the header asserts that it had not. */
export function busyAtFirst() {
  let isBusy = true
  return () => {
    if (!isBusy) return undefined
    isBusy = false
    return { status: 503, headers: { 'holdfast-outcome': 'not_sent' } }
  }
}
