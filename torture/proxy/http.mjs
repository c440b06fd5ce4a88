// @ts-check
import { httpScanner, requestLineOf } from './http-frames.mjs'
import { startProxy } from './proxy.mjs'

const headEnd = '\r\n\r\n'

/** @param {string | undefined} as @returns {import('./proxy.mjs').Protocol} */
function httpAs(as) {
  return {
    scheme: 'http',
    requests: () => httpScanner(),
    replies: (answered) => httpScanner({ methodOf: () => answered()?.words[0] ?? '' }),
    words: requestLineOf,
    // A request that waits for long would keep those behind it waiting.
    duplicatesInline: false,
    ...(as === undefined ? {} : { rewrite: (/** @type {Buffer} */ request) => withHost(request, as) }),
  }
}

/** @param {Buffer} request @param {string} host */
function withHost(request, host) {
  const end = request.indexOf(headEnd)
  const head = request.toString('latin1', 0, end).replace(/^host:.*$/im, `host: ${host}`)
  return Buffer.concat([Buffer.from(head, 'latin1'), request.subarray(end)])
}

/**
 * A proxy to a hub on loopback.
 * @param {number | (() => number)} target a port, asked for at every connection
 * @param {{ host?: string, as?: string }} [options] where it listens, loopback when absent; what requests then name as
 *   their host: a hub without principals serves nobody but loopback
 */
export function startHttpProxy(target, { as, ...options } = {}) {
  return startProxy(httpAs(as), target, options)
}
