// @ts-check
/** Of every payload in these items. */
export const payloadBytes = 200
const conversations = 1000

/** Its id, padded. @param {string} id */
export const payloadOf = (id) => Buffer.from(id.padEnd(payloadBytes))

/** @param {string} id @param {number} n @param {readonly string[]} hosts @returns {import('holdfast').MessageInput} */
export function messageTo(id, n, hosts) {
  return {
    key: id,
    conversation: `c-${n % conversations}`,
    sender: 'bench',
    to: hosts.map((host) => ({ host })),
    payload: payloadOf(id),
  }
}
