// @ts-check
// The messages of a run: a seed and a key make the same one, in whichever process.
import { createHash } from 'node:crypto'
import { createRandom } from '../random.mjs'

/** @typedef {{ host: string } | { session: string }} Recipient */
/** What messages are sent to; `fanOut`: to how many at most, where more than the usual is wanted. @typedef {{ hosts: string[], sessions: string[], conversations: string[], fanOut?: number }} Cast */

/**
 * `text`: the exact JSON text of the payload; else its bytes.
 * @typedef {object} Message
 * @property {string} key
 * @property {string} conversation
 * @property {Recipient[]} to
 * @property {string | undefined} text
 * @property {Buffer} bytes
 * @property {string} digest
 */

const sender = 'torture'
const shareOfBytes = 0.3
const longestText = 400
const longestBytes = 600

/** @param {string} seed @param {string} key @param {Cast} cast @returns {Message} */
export function messageOf(seed, key, cast) {
  const random = createRandom(`${seed} message ${key}`)
  const conversation = random.pick(cast.conversations)
  const to = recipientsOf(random, cast)
  const text = random.chance(shareOfBytes) ? undefined : textOf(random, key)
  const bytes = text === undefined ? bytesOf(random) : Buffer.from(text)
  return { key, conversation, to, text, bytes, digest: digestOf(bytes) }
}

/** @param {import('../random.mjs').Random} random @param {Cast} cast @returns {Recipient[]} */
function recipientsOf(random, { hosts, sessions, fanOut = 0 }) {
  if (fanOut > 0)
    return someOf(random, [...hosts.map(asHost), ...sessions.map(asSession)], random.int(1, fanOut))
  const host = random.pick(hosts)
  const kind = random.next()
  if (kind < 0.7) return [{ host }]
  if (kind < 0.85) return [{ host }, { host: random.pick(hosts.filter((other) => other !== host)) }]
  if (kind < 0.96) return [{ session: random.pick(sessions) }]
  return [{ session: random.pick(sessions) }, { host }]
}

/** @param {string} host @returns {Recipient} */
const asHost = (host) => ({ host })
/** @param {string} session @returns {Recipient} */
const asSession = (session) => ({ session })

/** So many different ones, or all. @param {import('../random.mjs').Random} random @param {Recipient[]} from @param {number} count */
function someOf(random, from, count) {
  const left = [...from]
  return Array.from({ length: Math.min(count, from.length) }, () =>
    left.splice(random.int(0, left.length - 1), 1),
  ).flat()
}

/** JSON that does not survive being read and written: its numbers, empty lists and blanks. @param {import('../random.mjs').Random} random @param {string} key */
function textOf(random, key) {
  const id = `${random.int(1, 9)}${String(random.int(0, 999_999_999)).padStart(9, '0')}${random.int(1000000, 9999999)}`
  const pad = 'x'.repeat(random.int(1, longestText))
  return `{"id":${id},"key":"${key}","a":[], "f":1.10,"e":"\\u00e9😀","n":null,"pad":"${pad}"}`
}

/** @param {import('../random.mjs').Random} random */
function bytesOf(random) {
  return Buffer.from(Array.from({ length: random.int(8, longestBytes) }, () => random.int(0, 255)))
}

/** The body of a request that sends it. @param {Message} message */
export function bodyOf({ conversation, to, text, bytes }) {
  const payload =
    text === undefined
      ? `"payloadBase64":"${bytes.toString('base64')}","contentType":"application/octet-stream"`
      : `"payload":${text}`
  return `{"conversation":${JSON.stringify(conversation)},"sender":"${sender}","to":${JSON.stringify(to)},${payload}}`
}

/** The same with one byte changed. @param {Message} message */
export function changedBody(message) {
  const bytes = Buffer.from(message.bytes)
  const at = message.text === undefined ? 0 : bytes.length - 3
  bytes[at] = message.text === undefined ? (bytes[at] ?? 0) ^ 1 : 'y'.charCodeAt(0)
  const text = message.text === undefined ? undefined : bytes.toString()
  return { body: bodyOf({ ...message, text, bytes }), digest: digestOf(bytes) }
}

/** @param {Buffer} bytes */
function digestOf(bytes) {
  return createHash('sha256').update(bytes).digest('hex')
}
