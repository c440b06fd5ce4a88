import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { backoffMs } from '../contract/backoff.js'
import { HoldfastError, isErrorCode, isRepeatable } from '../contract/errors.js'
import { ExchangeFailure, type ExchangeReply, type ExchangerTls, openExchanger } from './exchange.js'

/** A hub over HTTP, and who speaks to it. */
export interface HubAddress {
  /** `http://` or `https://`, with a path when the hub is below one. */
  readonly url: string
  /** Of a principal (`holdfast principal add`); a node's is bound to its host. */
  readonly token?: string | undefined
  /** PEM texts: a CA to trust, and the client certificate that a principal pins. */
  readonly tls?: ExchangerTls | undefined
}

/** One call of a hub. */
export interface Call<Schema extends z.ZodType> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Path and query; every part percent-encoded. */
  readonly path: string
  /** Sent as JSON; a string is JSON text already. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly reply: Schema
  /** Milliseconds from the call to the answer; the address's own deadline when absent. */
  readonly deadlineMs?: number
  /** It may wait long by intent: it takes no connection from the others. */
  readonly waits?: boolean
  readonly signal?: AbortSignal
  readonly onSent?: (() => void) | undefined
}

/** What a hub answered, checked. */
export interface Answer<Value> {
  readonly value: Value
  readonly status: number
  readonly headers: ExchangeReply['headers']
}

export interface Calls {
  /**
   * @throws CLOSED after `close`, HUB_UNREACHABLE when nothing was sent or no hub answers there, DEADLINE_EXCEEDED when the call may
   *   have taken effect, and whatever the hub answers
   */
  call<Schema extends z.ZodType>(call: Call<Schema>): Promise<Answer<z.output<Schema>>>
  /** The same, repeated until it is answered or the deadline has passed: for calls that are safe to repeat. */
  repeat<Schema extends z.ZodType>(call: Call<Schema>): Promise<Answer<z.output<Schema>>>
  /** GETs bytes, as `repeat` does. */
  bytes(path: string): Promise<Pick<ExchangeReply, 'body' | 'headers'>>
  /** A reply that is read as it comes. */
  stream(path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Readable>
  close(): void
}

const defaultDeadlineMs = 10_000
const retry = { leastMs: 50, mostMs: 1000 }
const streamIdleMs = 45_000
/** Connections of calls that wait, and of streams. */
const waitingAtMost = 4096

/** @throws INVALID_ARGUMENT for a URL, token or TLS material that cannot be used */
export function openCalls(address: HubAddress & { readonly deadlineMs?: number | undefined }): Calls {
  const { url, token, tls } = address
  const reach = { baseUrl: url, ...(tls === undefined ? {} : { tls }) }
  const exchanger = openExchanger(reach)
  const waiting = openExchanger({ ...reach, maxSockets: waitingAtMost })
  const identity = identityOf(token)
  let closed = false
  const ownDeadlineMs = address.deadlineMs ?? defaultDeadlineMs

  function checkOpen(): void {
    if (closed) throw new HoldfastError('CLOSED', 'this client of the hub is closed')
  }

  /** A reply that says that it went well. */
  async function exchanged({
    method,
    path,
    body,
    headers,
    deadlineMs = ownDeadlineMs,
    waits = false,
    signal,
    onSent,
  }: Omit<Call<z.ZodType>, 'reply'>): Promise<ExchangeReply> {
    checkOpen()
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
    const reply = await (waits ? waiting : exchanger)
      .exchange({
        method,
        path,
        headers: { ...identity, ...(text === undefined ? {} : jsonType), ...headers },
        ...(text === undefined ? {} : { body: text }),
        deadlineMs,
        ...(signal === undefined ? {} : { signal }),
        ...(onSent === undefined ? {} : { onSent }),
      })
      .catch((error: unknown) => {
        throw failureOf(error)
      })
    if (reply.status < 200 || reply.status > 299) throw problemOf(reply)
    return reply
  }

  async function call<Schema extends z.ZodType>(given: Call<Schema>): Promise<Answer<z.output<Schema>>> {
    const { method, path, reply: schema } = given
    const reply = await exchanged(given)
    const parsed = schema.safeParse(reply.status === 204 ? undefined : jsonOf(reply))
    if (!parsed.success) throw notAHub(`the answer to ${method} ${path.split('?', 1)[0]} has another form`)
    return { value: parsed.data, status: reply.status, headers: reply.headers }
  }

  const repeat: Calls['repeat'] = (given) => repeated(given, (deadlineMs) => call({ ...given, deadlineMs }))

  async function repeated<Reply>(
    given: Pick<Call<z.ZodType>, 'deadlineMs' | 'signal'>,
    once: (deadlineMs: number) => Promise<Reply>,
  ): Promise<Reply> {
    const deadlineAt = performance.now() + (given.deadlineMs ?? ownDeadlineMs)
    for (let failures = 1; ; failures += 1) {
      const leftMs = Math.max(1, deadlineAt - performance.now())
      try {
        return await once(leftMs)
      } catch (error) {
        const waitMs = backoffMs(retry, failures)
        if (closed || !isRepeatable(error) || given.signal?.aborted) throw error
        if (performance.now() + waitMs >= deadlineAt) throw error
        await sleep(waitMs, undefined, { signal: given.signal }).catch(() => undefined)
      }
    }
  }

  async function stream(
    path: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Readable> {
    checkOpen()
    const request = {
      method: 'GET',
      path,
      headers: { ...identity, ...headers },
      idleMs: streamIdleMs,
      signal,
    }
    const reply = await waiting.stream(request).catch((error: unknown) => {
      throw failureOf(error)
    })
    if (reply.status === 200) return reply.body
    const body = Buffer.concat(await reply.body.take(64).toArray())
    throw problemOf({ ...reply, body, bodyBytes: body.length })
  }

  function close(): void {
    closed = true
    exchanger.close()
    waiting.close()
  }

  const bytes: Calls['bytes'] = (path) =>
    repeated({}, (deadlineMs) => exchanged({ method: 'GET', path, deadlineMs }))

  return { call, repeat, bytes, stream, close }
}

const jsonType = { 'content-type': 'application/json' }

function identityOf(token: string | undefined): Readonly<Record<string, string>> {
  if (token === undefined) return {}
  if (!/^[\x21-\x7e]{1,512}$/.test(token)) {
    throw new HoldfastError('INVALID_ARGUMENT', 'the token holds what no token holds')
  }
  return { authorization: `Bearer ${token}` }
}

/** The peer's address stays out of the text of what was sent: only whether anything may have happened counts. */
function failureOf(error: unknown): unknown {
  if (!(error instanceof ExchangeFailure)) return error
  if (error.kind === 'too_large') return notAHub('the answer is too large')
  const code = error.sent ? 'DEADLINE_EXCEEDED' : 'HUB_UNREACHABLE'
  return new HoldfastError(code, error.message, { cause: error })
}

function notAHub(why: string): HoldfastError {
  return new HoldfastError('HUB_UNREACHABLE', why)
}

const problemShape = z.looseObject({
  code: z.string(),
  detail: z.string(),
  next: z.string(),
  current: z.unknown().optional(),
})

/** What a hub refused with; anything else that is no success came from something that is no hub. */
function problemOf(reply: ExchangeReply): HoldfastError {
  const found = problemShape.safeParse(jsonOf(reply))
  if (!found.success) return notAHub(`status ${reply.status} without a problem of a hub`)
  const { code, detail, next, current } = found.data
  if (isErrorCode(code)) return new HoldfastError(code, detail, { next, current })
  return notAHub(`status ${reply.status} with code ${code.slice(0, 64)}, which this version does not know`)
}

function jsonOf(reply: ExchangeReply): unknown {
  try {
    return JSON.parse(reply.body.toString('utf8'))
  } catch {
    return undefined
  }
}
