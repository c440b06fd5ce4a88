// @ts-check
// A connection over which one request after another goes. No more than that, so that little of the two cores is
// spent on asking: a client that is the bottleneck would make every server look alike.
import { connect } from 'node:net'

/** @typedef {{ status: number, body: string }} Answer */
/** @typedef {{ send: (method: string, path: string, body: unknown, headers?: Record<string, string>) => Promise<Answer>, close: () => void }} Connection */

/** @param {number} port on loopback @returns {Promise<Connection>} */
export async function openConnection(port) {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  /** @type {{ resolve: (answer: Answer) => void, reject: (error: Error) => void } | undefined} */
  let waiting
  /** @type {Buffer[]} */
  let arrived = []

  const fail = (/** @type {Error} */ error) => waiting?.reject(error)
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('the connection was closed')))
  socket.on('data', (chunk) => {
    arrived.push(chunk)
    const bytes = arrived.length === 1 ? chunk : Buffer.concat(arrived)
    try {
      const answer = answerOf(bytes)
      if (answer === undefined) return
      const asked = waiting
      waiting = undefined
      arrived = []
      asked?.resolve(answer)
    } catch (error) {
      fail(error instanceof Error ? error : new Error(String(error)))
    }
  })

  return {
    send: (method, path, body, headers = {}) => {
      const text = JSON.stringify(body)
      const head = Object.entries({
        host: '127.0.0.1',
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(text)),
        ...headers,
      }).map(([name, value]) => `${name}: ${value}\r\n`)
      return new Promise((resolve, reject) => {
        waiting = { resolve, reject }
        socket.write(`${method} ${path} HTTP/1.1\r\n${head.join('')}\r\n${text}`)
      })
    },
    close: () => {
      waiting = undefined
      socket.destroy()
    },
  }
}

/** @param {Buffer} bytes @returns {Answer | undefined} undefined while it has not come completely */
function answerOf(bytes) {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = bytes.toString('latin1', 0, end)
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1])
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1])
  if (Number.isNaN(status + length)) throw new Error(`an answer of another form: ${head.slice(0, 200)}`)
  const from = end + 4
  if (bytes.length < from + length) return undefined
  return { status, body: bytes.toString('utf8', from, from + length) }
}
