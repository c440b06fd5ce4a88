// @ts-check
// A payment gateway. It keeps a log by idempotency key, and of every key the highest epoch that it heard of: an older one
// is refused, so whoever asks under a new epoch knows that no earlier request can do anything any more.
//   POST /charges      {card, cents}, headers idempotency-key and epoch: 201, 402 declined, 409 stale epoch, 429 busy
//   GET  /charges/KEY  header epoch: what became of the key, 404 when nothing did
//   GET  /journal      what it did, line by line
import { once } from 'node:events'
import { createServer } from 'node:http'

/**
 * @typedef {object} Row what is known of a key
 * @property {number} epoch the highest that was heard
 * @property {{status: number, body: object}} [answer]
 */

/** @type {Map<string, Row>} */
const rows = new Map()
/** @type {string[]} */
const journal = []
let charges = 0
let isBusy = true // for its first request

/** @param {string} key @param {number} epoch */
function rowOf(key, epoch) {
  const row = rows.get(key) ?? { epoch }
  rows.set(key, row)
  row.epoch = Math.max(row.epoch, epoch)
  return row
}

/** @param {string} key @param {number} epoch @param {{card: string, cents: number}} payment */
function charge(key, epoch, { card, cents }) {
  const row = rowOf(key, epoch)
  if (epoch < row.epoch) return note(key, epoch, 'refused', { status: 409, body: { error: 'stale_epoch' } })
  if (row.answer !== undefined) return note(key, epoch, 'answered again', row.answer)
  if (card === 'declined') {
    row.answer = { status: 402, body: { error: 'card_declined' } }
    return note(key, epoch, 'declined', row.answer)
  }
  charges += 1
  row.answer = { status: 201, body: { charge: `ch-${charges}`, cents } }
  return note(key, epoch, `charged ${cents}`, row.answer)
}

/** @template Answer @param {string} key @param {number} epoch @param {string} what @param {Answer} answer */
function note(key, epoch, what, answer) {
  journal.push(`${key} epoch ${epoch}: ${what}`)
  return answer
}

const server = createServer(async (request, response) => {
  const { method, url = '', headers } = request
  const epoch = Number(headers['epoch'])
  /** @param {{status: number, body: object}} answer */
  function reply({ status, body }) {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }

  if (url === '/journal') return reply({ status: 200, body: journal })
  if (method === 'GET') {
    const key = decodeURIComponent(url.slice('/charges/'.length))
    const { answer = { status: 404, body: {} } } = rowOf(key, epoch)
    server.emit(`asked ${key}`)
    return reply(note(key, epoch, `asked about, ${answer.status}`, answer))
  }

  let body = ''
  for await (const chunk of request) body += chunk
  const payment = JSON.parse(body)
  const key = String(headers['idempotency-key'])
  if (isBusy) {
    isBusy = false
    return reply(note(key, epoch, 'busy', { status: 429, body: {} }))
  }
  // Two cards for trouble: the request comes late, after somebody asked what became of it; the answer never comes.
  if (payment.card === 'comes late' && epoch === 1) {
    journal.push(`${key} epoch ${epoch}: on its way`)
    await once(server, `asked ${key}`)
  }
  const answer = charge(key, epoch, payment)
  if (payment.card !== 'never answers') reply(answer)
})

server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  process.stdout.write(`http://127.0.0.1:${port}\n`)
})
