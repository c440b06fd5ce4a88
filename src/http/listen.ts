import { isIP } from 'node:net'
import { HoldfastError } from '../contract/errors.js'

/** Where a server listens. */
export interface Listen {
  readonly host: string
  /** 0: any free one. */
  readonly port: number
}

/** Reads `host:port`, `[v6]:port` or `:port` (all interfaces). @throws INVALID_ARGUMENT */
export function parseListen(text: string): Listen {
  const found = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s[\]]*)):(\d{1,5})$/.exec(text)
  const port = Number(found?.[3])
  if (found === null || port > 65_535) {
    throw new HoldfastError('INVALID_ARGUMENT', `${JSON.stringify(text)} is no <address>:<port>`)
  }
  return { host: found[1] ?? (found[2] || '0.0.0.0'), port }
}

/** True for names and addresses that reach this machine alone. */
export function isLoopback(host: string): boolean {
  if (host === 'localhost') return true
  if (isIP(host) === 4) return host.startsWith('127.')
  return isIP(host) === 6 && (host === '::1' || /^::ffff:127\./i.test(host))
}
