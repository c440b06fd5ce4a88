// @ts-check
import { startProxy } from './proxy.mjs'
import { respScanner, wordsOf } from './resp-frames.mjs'

/** @type {import('./proxy.mjs').Protocol} */
const resp = {
  scheme: 'redis',
  requests: respScanner,
  replies: () => respScanner(),
  words: wordsOf,
  duplicatesInline: true,
}

/**
 * A proxy to a Redis server on loopback.
 * @param {number | (() => number)} target a port, asked for at every connection
 * @param {{ host?: string }} [options] where it listens, loopback when absent
 */
export function startRespProxy(target, options) {
  return startProxy(resp, target, options)
}
