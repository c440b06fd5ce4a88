import type { IncomingMessage } from 'node:http'
import { problem } from './problem.js'
import type { App } from './routes/parts.js'

/** More header lines than any client or proxy sends. */
const headersAtMost = 200
/** Headers that decide something here: two of one would be two meanings. */
const singular = new Set([
  'host',
  'authorization',
  'cookie',
  'origin',
  'sec-fetch-site',
  'holdfast-page',
  'content-type',
  'content-encoding',
  'idempotency-key',
  'last-event-id',
])

/**
 * Refuses heads that other readers of HTTP, such as a proxy before this server, may read otherwise: the parser
 * takes them. Put it before everything else that looks at requests.
 */
export function addHeadCheck(app: App): void {
  app.addHook('onRequest', async ({ raw }) => checkHead(raw))
}

/** @throws INVALID_ARGUMENT */
function checkHead({ httpVersion, rawHeaders, headers, url = '' }: IncomingMessage): void {
  if (httpVersion === '0.9') throw problem('INVALID_ARGUMENT', 'the request is of no version of HTTP')
  if (httpVersion !== '1.0' && headers.host === undefined) {
    throw problem('INVALID_ARGUMENT', 'no header host', { pointer: 'header:/host' })
  }
  if (rawHeaders.length > 2 * headersAtMost) {
    throw problem('INVALID_ARGUMENT', `more than ${headersAtMost} headers`, { status: 431 })
  }
  const met = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? ''
    if (met.has(name)) {
      throw problem('INVALID_ARGUMENT', `two headers ${name}`, { pointer: `header:/${name}` })
    }
    if (singular.has(name)) met.add(name)
  }
  if (url.includes('#')) throw problem('INVALID_ARGUMENT', 'the path is not well-formed')
  // The absolute form names the host once more.
  const [, authority] = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i.exec(url) ?? []
  if (authority !== undefined && authority.toLowerCase() !== headers.host?.toLowerCase()) {
    throw problem('INVALID_ARGUMENT', 'the request line names another host than the header Host')
  }
}
