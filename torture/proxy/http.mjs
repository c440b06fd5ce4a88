// @ts-check
import { httpScanner, requestLineOf } from './http-frames.mjs'
import { startProxy } from './proxy.mjs'

/** @type {import('./proxy.mjs').Protocol} */
const http = {
  scheme: 'http',
  requests: () => httpScanner(),
  replies: (answered) => httpScanner({ methodOf: () => answered()?.words[0] ?? '' }),
  words: requestLineOf,
  // A request that waits for long would keep those behind it waiting.
  duplicatesInline: false,
}

/**
 * A proxy to a hub on loopback.
 * @param {number | (() => number)} target a port, asked for at every connection
 * @param {{ host?: string }} [options] where it listens, loopback when absent
 */
export function startHttpProxy(target, options) {
  return startProxy(http, target, options)
}
