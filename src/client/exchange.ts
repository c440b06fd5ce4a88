import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { PassThrough, type Readable } from 'node:stream'
import { createSecureContext } from 'node:tls'
import { HoldfastError, isHoldfastError } from '../contract/errors.js'
import { createCalls, describe, type ExchangeReply, replyOf } from './exchange-call.js'

export { ExchangeFailure, type ExchangeReply } from './exchange-call.js'

/** HTTP/1.1 requests to one origin, over connections of its own. */
export interface Exchanger {
  /**
   * One request and its whole reply, whatever its status; redirects are not followed.
   * @throws ExchangeFailure when there is no whole reply; HoldfastError INVALID_ARGUMENT for a request that
   *   HTTP cannot state (then nothing has left)
   */
  exchange(request: ExchangeRequest): Promise<ExchangeReply>
  /**
   * One request whose reply is read as it comes (server-sent events). Resolves at the reply's head, whatever
   * its status; a body that does not come to its end is destroyed with an ExchangeFailure. Destroying the
   * body ends the exchange.
   * @throws as `exchange`, until the head is there
   */
  stream(request: StreamRequest): Promise<StreamReply>
  /** Ends every exchange (`aborted`) and every connection; later ones are `aborted` at once. */
  close(): void
}

export interface ExchangerOptions {
  /** `http:` or `https:`, with a path when requests go below one; no userinfo, query or fragment. */
  readonly baseUrl: string | URL
  readonly tls?: ExchangerTls
  /** Connections at a time (128); a request that waits for one is under its time limit all the same. */
  readonly maxSockets?: number
  /** So long is an idle connection kept, in ms (4000: less than the 5000 of a Node server); 0: never used twice. */
  readonly keepAliveMs?: number
}

/** PEM text, as node:tls takes it. Certificates are always verified. */
export interface ExchangerTls {
  /** Authorities to trust; those that Node trusts when absent. */
  readonly ca?: string | Buffer
  /** The certificate to show, with its chain. */
  readonly cert?: string | Buffer
  /** Its key. */
  readonly key?: string | Buffer
  /** The name to verify; the URL's host when absent. */
  readonly servername?: string
}

interface RequestParts {
  readonly method: string
  /** Path and query, escaped; sent as it is, behind the path of `baseUrl`. */
  readonly path: string
  /** Those that frame a request (content-length, connection and the like) are refused: they are set here. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer | string
  /** Ends the exchange; its reason is the failure's cause. */
  readonly signal?: AbortSignal
  /** Called once the whole request was handed to the system; not when the exchange is over before that. */
  readonly onSent?: () => void
}

export interface ExchangeRequest extends RequestParts {
  /** From the call to the last byte of the reply, in ms on a monotonic clock; at most 24 days. */
  readonly deadlineMs: number
  /** Largest body that is read, in bytes (64 MiB); over it the exchange fails as `too_large`. */
  readonly maxReplyBytes?: number
  /** So much of the body is kept, in bytes (all); the rest is read and dropped. */
  readonly keepReplyBytes?: number
}

export interface StreamRequest extends RequestParts {
  /** So long without a byte of the reply, in ms, and it fails as `timed_out`; a slow reader does not count. */
  readonly idleMs: number
}

export interface StreamReply {
  readonly status: number
  readonly headers: ExchangeReply['headers']
  readonly body: Readable
}

const framing = /^(?:connection|content-length|expect|keep-alive|te|trailer|transfer-encoding|upgrade)$/i

/**
 * Opens an exchanger; nothing is connected before the first request.
 * @throws HoldfastError INVALID_ARGUMENT for a URL or TLS material that cannot be used; values are not repeated
 */
export function openExchanger(options: ExchangerOptions): Exchanger {
  const { baseUrl, tls, maxSockets = 128, keepAliveMs = 4000 } = options
  const base = httpUrl(baseUrl)
  if (base.search !== '' || base.hash !== '') throw invalid('the base URL must have no query and no fragment')
  const below = base.pathname.replace(/\/$/, '')
  const pool = {
    maxFreeSockets: maxSockets,
    ...(keepAliveMs > 0 && { keepAlive: true, timeout: keepAliveMs }),
  }
  const secure = base.protocol === 'https:'
  const agent = secure ? new HttpsAgent({ ...pool, ...tlsOptions(tls) }) : new HttpAgent(pool)
  const calls = createCalls(maxSockets)

  function dial({ method, path, body, headers: own = {} }: RequestParts): ClientRequest | HoldfastError {
    const length = body !== undefined && { 'content-length': Buffer.byteLength(body) }
    const headers = { ...own, ...length }
    try {
      checkHeaders(own)
      if (!path.startsWith('/')) return invalid('the path must begin with /')
      return (secure ? httpsRequest : httpRequest)(base.origin, {
        agent,
        method,
        path: below + path,
        headers,
      })
    } catch (error) {
      return isHoldfastError(error) ? error : invalid(describe(error)) // a method or path, by its name alone
    }
  }

  function callOf(request: RequestParts) {
    const { signal, body, onSent } = request
    return { signal, body, onSent, dial: () => dial(request) }
  }

  function exchange(request: ExchangeRequest): Promise<ExchangeReply> {
    const { maxReplyBytes = 64 << 20, keepReplyBytes = maxReplyBytes } = request
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let bytes = 0
      let replySoFar = (): ExchangeReply | undefined => undefined
      calls.begin({
        ...callOf(request),
        limitMs: request.deadlineMs,
        onFailure: reject,
        replySoFar: () => replySoFar(),
        onReply(reply, call) {
          replySoFar = () => replyOf(reply, chunks, bytes)
          reply.on('data', (chunk: Buffer) => {
            if (bytes < keepReplyBytes) chunks.push(chunk.subarray(0, keepReplyBytes - bytes))
            bytes += chunk.length
            if (bytes > maxReplyBytes) call.fail('too_large', new Error(`over ${maxReplyBytes} bytes`))
          })
          reply.once('end', () => {
            call.done()
            resolve(replyOf(reply, chunks, bytes))
          })
        },
      })
    })
  }

  function stream(request: StreamRequest): Promise<StreamReply> {
    return new Promise((resolve, reject) => {
      const body = new PassThrough()
      body.on('error', () => {}) // a failure that nobody listens for is no crash; a reader meets it
      calls.begin({
        ...callOf(request),
        limitMs: request.idleMs,
        holdsBack: () => body.writableNeedDrain,
        onFailure(error) {
          reject(error) // once the head is there, the body alone tells
          body.destroy(error)
        },
        onReply(reply, call) {
          body.once('close', () => call.fail('aborted', new Error('the reader left')))
          call.touch()
          reply.on('data', call.touch)
          reply.once('end', call.done)
          reply.pipe(body)
          resolve({ status: reply.statusCode ?? 0, headers: reply.headers, body })
        },
      })
    })
  }

  function close(): void {
    calls.close()
    agent.destroy()
  }

  return { exchange, stream, close }
}

/**
 * Reads the URL of a peer.
 * @throws HoldfastError INVALID_ARGUMENT unless it is absolute, `http:` or `https:`, and without userinfo; the
 *   text is not repeated, as it may hold a secret
 */
export function httpUrl(text: string | URL): URL {
  const url = URL.canParse(String(text)) ? new URL(String(text)) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw invalid('the URL must be absolute and begin with http:// or https://')
  }
  if (url.username === '' && url.password === '') return url
  throw invalid('the URL must not hold a user name or password; use a header')
}

/**
 * Refuses headers that cannot be sent.
 * @throws HoldfastError INVALID_ARGUMENT naming the header, not its value
 */
export function checkHeaders(headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    if (framing.test(name)) throw invalid(`header ${name} is not the caller's to set`)
    try {
      validateHeaderName(name)
      validateHeaderValue(name, value)
    } catch {
      throw invalid(`header ${JSON.stringify(name)} is no header, or its value cannot be sent`)
    }
  }
}

function tlsOptions({ servername, ...material }: ExchangerTls = {}) {
  try {
    const secureContext = createSecureContext(material)
    // Said aloud, or NODE_TLS_REJECT_UNAUTHORIZED=0 would switch it off.
    return { rejectUnauthorized: true, secureContext, ...(servername !== undefined && { servername }) }
  } catch (error) {
    throw invalid(`the TLS material cannot be used: ${describe(error)}`)
  }
}

function invalid(detail: string): HoldfastError {
  return new HoldfastError('INVALID_ARGUMENT', detail)
}
