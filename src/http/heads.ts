import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ErrorCode } from '../contract/errors.js'
import { problem, problemOf } from './problem.js'
import type { App } from './routes/parts.js'

/** More header lines than any client or proxy sends. */
const headersAtMost = 200
/** Headers that decide something here: two of one would be two meanings. */
const singular = new Set([
  'host',
  'authorization',
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
  app.server.on('request', (request, response) => latest.set(request.socket, response))
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

/** What is no HTTP, or came too slowly, is told so, unless that could be taken for another answer; then closed. */
export function refuseMalformed(error: Error & { code?: string }, socket: Socket): void {
  const refusal = refusals[error.code ?? ''] ?? (error.code?.startsWith('HPE_') ? notHttp : undefined)
  // Nothing goes out where the connection failed, or its TLS: that would be waited for without end.
  if (refusal === undefined || !socket.writable || !mayTell(latest.get(socket))) return void socket.destroy()
  socket.end(textOf(refusal))
  socket.destroySoon()
}

/** The latest answer of each connection. */
const latest = new WeakMap<Socket, ServerResponse>()

/** Whether the next words to this client would be about what is malformed, and about nothing before it. */
function mayTell(answering: ServerResponse | undefined): boolean {
  if (answering === undefined) return true
  if (answering.req.complete) return answering.writableFinished
  return !answering.headersSent
}

interface Refusal {
  readonly status: string
  readonly code: ErrorCode
  readonly detail: string
}

const notHttp: Refusal = { status: '400 Bad Request', code: 'INVALID_ARGUMENT', detail: 'this is no HTTP' }
const refusals: Readonly<Record<string, Refusal>> = {
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: '408 Request Timeout',
    code: 'DEADLINE_EXCEEDED',
    detail: 'the request did not come in time; nothing of it was done',
  },
  HPE_HEADER_OVERFLOW: {
    status: '431 Request Header Fields Too Large',
    code: 'INVALID_ARGUMENT',
    detail: 'the request line and the headers are over 16 KiB',
  },
}

function textOf({ status, code, detail }: Refusal): string {
  const body = JSON.stringify(problemOf(problem(code, detail, { status: Number(status.slice(0, 3)) })))
  const head = [
    `HTTP/1.1 ${status}`,
    'connection: close',
    'content-type: application/problem+json',
    `content-length: ${Buffer.byteLength(body)}`,
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
