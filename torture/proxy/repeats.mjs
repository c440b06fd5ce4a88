// @ts-check
// What may arrive twice: the calls that whoever makes them repeats until they are answered.

const functions = new Set(
  [
    'accept',
    'accept_batch',
    'fan_out',
    'join',
    'heartbeat',
    'claim',
    'mirror',
    'ack',
    'take',
    'begin',
    'report',
    'refuse',
  ].map((verb) => `hf_${verb}`),
)
const routes = [
  /^POST \/v1\/messages$/,
  /^(POST|PUT) \/v1\/hosts\/[^/]+\/nodes\/[^/]+$/,
  /^POST \/v1\/hosts\/[^/]+\/(claim|mirror|ack|take|begin|refuse)$/,
  /^POST \/delivery-report$/,
]

/** @param {string[]} words of a request: a command and its first arguments, or method and path @returns {boolean} */
export function isRepeatable([first = '', second = '']) {
  if (/^FCALL$/i.test(first)) return functions.has(second)
  const line = `${first} ${second.split('?')[0]}`
  return routes.some((route) => route.test(line))
}
