import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'
import type { HoldfastError } from '../contract/errors.js'

/** A reply, or what came of it. */
export interface ExchangeReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** Of the body that came; more than `body` holds when not all is kept. */
  readonly bodyBytes: number
}

/**
 * - `refused`: no connection (name, port, TLS, certificate); never `sent`
 * - `cut`: the peer ended the connection, or spoke no HTTP; always `sent`
 * - `timed_out`, `aborted`: this side gave up, `sent` or not
 * - `too_large`: the reply is over the limit; always `sent`
 */
export type FailureKind = 'refused' | 'cut' | 'timed_out' | 'aborted' | 'too_large'

/** Why there is no whole reply. The message holds neither path nor headers. */
export class ExchangeFailure extends Error {
  override readonly name = 'ExchangeFailure'
  readonly kind: FailureKind
  /**
   * False is proof that not one byte of the request left, and none will: there was no connection, or its TLS
   * handshake was not over. True says that some may have: on a kept connection also when the peer had just
   * closed it.
   */
  readonly sent: boolean
  /** What came of the reply: its head, and the body up to the failure. */
  readonly reply: ExchangeReply | undefined

  constructor(kind: FailureKind, sent: boolean, cause: unknown, reply?: ExchangeReply) {
    super(`${kind}: ${describe(cause)}`, { cause })
    this.kind = kind
    this.sent = sent
    this.reply = reply
  }
}

/** One exchange as its two ends see it. */
export interface Call {
  /** The reply is whole: no failure can follow. */
  done(): void
  fail(kind: FailureKind, cause: unknown): void
  /** Starts the time limit over. */
  touch(): void
}

/** What a call is run with, and who is told. */
export interface CallOptions {
  readonly limitMs: number
  readonly signal: AbortSignal | undefined
  readonly body: Buffer | string | undefined
  /** The request, not yet ended, or why it cannot be made. */
  dial(): ClientRequest | HoldfastError
  onSent: (() => void) | undefined
  onReply(reply: IncomingMessage, call: Call): void
  /** At most once, before or after `onReply`, and nothing after it. */
  onFailure(error: ExchangeFailure | HoldfastError): void
  /** The reply up to now, for a failure to tell. */
  replySoFar?(): ExchangeReply | undefined
  /** The reply waits for its reader, so the limit does not count. */
  holdsBack?(): boolean
}

/** Runs calls, at most so many at a time. */
export interface Calls {
  begin(options: CallOptions): void
  /** Fails every call, and every later one. */
  close(): void
}

/** The largest that a timer takes. */
const longestMs = 2 ** 31 - 1

export function createCalls(maxSockets: number): Calls {
  const slots = createSlots(maxSockets)
  const live = new Set<Call>()
  let closed = false

  function begin(options: CallOptions): void {
    const { limitMs, signal } = options
    let outgoing: ClientRequest | undefined
    let incoming: IncomingMessage | undefined
    let sent = false
    let over = false

    function done(): void {
      over = true
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      live.delete(call)
      slots.forget(start)
      if (outgoing?.writableFinished === false) outgoing.destroy() // replied to before it was read
    }
    function fail(kind: FailureKind, cause: unknown): void {
      if (over) return
      done()
      outgoing?.destroy()
      const reply = options.replySoFar?.() ?? (incoming && replyOf(incoming))
      options.onFailure(new ExchangeFailure(kind, sent, cause, reply))
    }
    function lost(cause: unknown): void {
      if (incoming?.complete !== true) fail(sent ? 'cut' : 'refused', cause) // else its end is on the way
    }
    function onTimer(): void {
      if (options.holdsBack?.()) timer.refresh()
      else fail('timed_out', new Error(`the limit of ${limitMs} ms was reached`))
    }
    function onAbort(): void {
      fail('aborted', signal?.reason)
    }
    function start(): void {
      const dialled = options.dial()
      if (dialled instanceof Error) {
        slots.give()
        done()
        options.onFailure(dialled)
      } else follow(dialled)
    }
    function follow(request: ClientRequest): void {
      outgoing = request
      whenConnected(request, () => {
        sent = true
      })
      request.on('error', lost)
      request.once('close', () => {
        process.nextTick(slots.give) // by then the agent has the connection back
        if (incoming === undefined) lost(new Error('the connection was closed'))
      })
      request.once('finish', () => {
        if (sent && !over) options.onSent?.()
      })
      request.once('response', (reply) => {
        incoming = reply
        reply.on('error', lost)
        reply.once('close', () => lost(new Error('the reply was cut')))
        options.onReply(reply, call)
      })
      request.once('upgrade', (reply, socket) => {
        incoming = reply
        socket.destroy()
        fail('cut', new Error('the peer switched protocols'))
      })
      request.end(options.body)
    }
    function touch(): void {
      if (!over) timer.refresh()
    }

    const timer = setTimeout(onTimer, Math.min(limitMs, longestMs))
    const call: Call = { done, fail, touch }
    live.add(call)
    signal?.addEventListener('abort', onAbort)
    if (closed) fail('aborted', new Error('the exchanger is closed'))
    else if (signal?.aborted) onAbort()
    else slots.take(start)
  }

  function close(): void {
    closed = true
    for (const call of [...live]) call.fail('aborted', new Error('the exchanger was closed'))
  }

  return { begin, close }
}

/** Calls back when the connection takes bytes of the request, directly before the first of them. */
function whenConnected(request: ClientRequest, then: () => void): void {
  request.once('socket', (socket) => {
    if (socket.destroyed) return
    if (socket.connecting) socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', then)
    else then()
  })
}

/** So many at a time. An agent has a queue as well, but it connects for requests that are over. */
function createSlots(most: number) {
  const waiting = new Set<() => void>()
  let taken = 0
  function next(): void {
    const [start] = waiting
    if (start === undefined || taken >= most) return
    waiting.delete(start)
    taken += 1
    start()
  }
  return {
    /** Starts now, or when a slot is given back. */
    take(start: () => void): void {
      waiting.add(start)
      next()
    },
    give(): void {
      taken -= 1
      next()
    },
    forget: (start: () => void) => waiting.delete(start),
  }
}

export function replyOf(
  reply: IncomingMessage,
  chunks: readonly Buffer[] = [],
  bodyBytes = 0,
): ExchangeReply {
  return { status: reply.statusCode ?? 0, headers: reply.headers, body: Buffer.concat(chunks), bodyBytes }
}

/** What went wrong, in words; an AggregateError of several addresses has a code alone. Never throws. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : 'no reason was given'
  return String(error.message || ('code' in error ? error.code : error.name))
}
