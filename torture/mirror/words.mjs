// @ts-check
// What the writer stores, recomputed from its name alone: so that every byte read back can be judged.
import { createHash } from 'node:crypto'

/** @typedef {import('../../src/node/mirror.ts').Copy} Copy */
/** @typedef {import('../../src/node/mirror.ts').Report} Report */

/** How far the life of a delivery goes: 0 copy, 1 grant, 2 start mark, 3 report. @typedef {0 | 1 | 2 | 3} Depth */

/** @param {string} text */
function bytesOf(text) {
  return createHash('sha256').update(text).digest()
}

/** The deliveries stored by one call: a message of one to three. @param {string} message */
export function deliveriesOf(message) {
  const count = 1 + ((bytesOf(message)[0] ?? 0) % 3)
  return Array.from({ length: count }, (_, at) => `${message}.${at + 1}`)
}

/** @param {string} delivery */
export function messageOf(delivery) {
  return delivery.slice(0, delivery.lastIndexOf('.'))
}

/** @param {string} delivery @returns {Depth} */
export function depthOf(delivery) {
  return /** @type {Depth} */ ((bytesOf(delivery)[1] ?? 0) % 4)
}

/** One of twenty is kept for good: later cuts must leave it alone too. @param {string} message */
export function isKept(message) {
  return (bytesOf(message)[2] ?? 0) % 20 === 0
}

/** @param {string} delivery @returns {Copy} */
export function copyOf(delivery) {
  const bytes = bytesOf(delivery)
  const size = bytes.readUInt16BE(4) % ((bytes[3] ?? 0) % 32 === 0 ? 60_000 : 3_000)
  const message = { id: messageOf(delivery), conversation: 'c', sender: 's', sha256: bytes.toString('hex') }
  return { delivery, epoch: 1 + bytes.readUInt16BE(6), message, payload: Buffer.alloc(size, bytes) }
}

/** @param {string} delivery */
export function grantOf(delivery) {
  return { grant: `g-${delivery}`, delivery, epoch: copyOf(delivery).epoch }
}

/** @param {string} delivery @returns {Report} */
export function reportOf(delivery) {
  const words = bytesOf(delivery).toString('base64').repeat(6)
  /** @type {Report['outcome']} */
  const outcome =
    depthOf(delivery) === 3 && isUnknown(delivery)
      ? { kind: 'outcome_unknown', errorCode: 'lost', errorJson: JSON.stringify(words) }
      : { kind: 'result', result: JSON.stringify(words) }
  const { grant } = grantOf(delivery)
  return { key: `k-${delivery}`, grant, delivery, attempt: 1, outcome, final: true }
}

/** @param {string} delivery */
export function isUnknown(delivery) {
  return (bytesOf(delivery)[8] ?? 0) % 2 === 0
}
