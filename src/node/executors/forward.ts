import { isUtf8 } from 'node:buffer'
import {
  checkHeaders,
  ExchangeFailure,
  type ExchangeReply,
  type Exchanger,
  type ExchangerTls,
  httpUrl,
  openExchanger,
} from '../../client/exchange.js'
import { HoldfastError } from '../../contract/errors.js'
import { checkOptions, option, optionsOf } from '../../contract/options.js'
import type { Outcome } from '../../contract/outcomes.js'
import type { Attempt, Executor } from '../executor.js'
import { activeTraceparent, ownTraceparent } from '../tracing.js'
import { attemptHeaders, refuseOurHeaders } from './attempt-headers.js'
import { wholeCharacters } from './command-output.js'
import { isTimeout, messageOf } from './failures.js'

/** Where {@link forwardExecutor} sends attempts, and its limits. */
export interface ForwardExecutorOptions {
  /** Absolute `http:` or `https:` URL, without userinfo. */
  readonly url: string | URL
  /** Sent along, for instance authorization; not the names in the table of headers. No outcome repeats them. */
  readonly headers?: Readonly<Record<string, string>>
  /** For `https:`; the authorities that Node trusts when absent. */
  readonly tls?: ExchangerTls
  /** Milliseconds that a request may take, beside the node's own time limit; that one alone when absent. */
  readonly timeoutMs?: number
  /** Largest JSON text of a result, in bytes, to which the reply's body is cut; 262,144 when absent. */
  readonly maxResultBytes?: number
  /** The W3C trace context to send; the active span's when absent; undefined, or no traceparent, for one of our own. */
  readonly traceparent?: (attempt: Attempt) => string | undefined
}

const form = optionsOf<ForwardExecutorOptions>({
  url: option.url,
  headers: option.names,
  tls: option.tls,
  timeoutMs: option.count,
  maxResultBytes: option.bytes,
  traceparent: option.function.optional(),
})

interface Settings {
  readonly exchanger: Exchanger
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly maxResultBytes: number
  readonly traceparent: (attempt: Attempt) => string | undefined
}

/** A target's own word on what it did, in a reply that is not 2xx. */
const outcomeHeader = 'holdfast-outcome'
/** A reply is read up to here, in bytes; then the connection is ended. */
const maxReplyBytes = 8 << 20
const excerptBytes = 4096
const excerptBase64Bytes = (excerptBytes / 4) * 3
const maxHeaderChars = 255

const traceparentForm = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/**
 * Runs attempts as an HTTP POST to a target (contract section 4).
 *
 * The body is the payload, byte for byte, under the message's content type (else application/octet-stream).
 * The context is in the headers: Idempotency-Key and Holdfast-Attempt (both the attempt's id),
 * Holdfast-Delivery, Holdfast-Attempt-Number, Holdfast-Epoch, Holdfast-Message, Holdfast-Conversation,
 * Holdfast-Sender, Holdfast-Hub, Holdfast-Host, Holdfast-Node, Holdfast-Sha256, where there is one Holdfast-Session and
 * Holdfast-Parent, and traceparent. In every Holdfast header a blank is written `%20` and a percent sign
 * `%25`, nothing else: percent-decoding gives the id back, and no parser on the way trims it. By default all
 * attempts of a message share a trace id (of the message's id); the span is the attempt's.
 *
 * The status decides, from the reply's head on. A target that knows better says so in a header of a reply
 * that is not 2xx: `Holdfast-Outcome: not_sent` (it asserts that it had not begun), `terminal` or
 * `outcome_unknown`.
 *
 * | what came | outcome |
 * |---|---|
 * | 2xx | `result` `{"status":200,"contentType":"…","json":…}`; `body` when it is no JSON, `bodyBase64` when it is no UTF-8; `truncated` and `bodyBytes` when not all is kept, `cut` when its end never came |
 * | 2xx with a Holdfast-Outcome | `outcome_unknown` `contradictory_reply` |
 * | any other status with a Holdfast-Outcome | that outcome |
 * | 421, 425, 429 | `not_sent` `http_<status>`: by their RFCs refused before anything began |
 * | 408, 409, 423 | `outcome_unknown` `http_<status>`: an earlier copy of the request may be at work |
 * | 404, 410 when the delivery has a session | `terminal` `target_session_missing` |
 * | any other 4xx | `terminal` `http_<status>` |
 * | 1xx, 3xx (not followed), 5xx, others | `outcome_unknown` `http_<status>` |
 * | no connection: name, port, TLS, certificate | `not_sent` `not_connected` |
 * | the limit, or an abort, before the first byte left | `not_sent` `timed_out` (the reason is a TimeoutError) or `aborted` |
 * | the same later, without a whole 2xx reply or the head of another | `outcome_unknown` `timed_out`, `aborted` |
 * | the connection ended before a reply's head | `outcome_unknown` `cut` |
 *
 * Every attempt has a connection of its own: on a kept one, a target that closes it at the same moment would
 * make the outcome unknown.
 * @throws HoldfastError INVALID_ARGUMENT for options that cannot be used; no value is repeated
 */
export function forwardExecutor(options: ForwardExecutorOptions): Executor {
  checkOptions('forwardExecutor', form, options)
  const { headers = {}, timeoutMs = Number.POSITIVE_INFINITY, maxResultBytes = 262_144, tls } = options
  const target = httpUrl(options.url)
  checkHeaders(headers)
  refuseOurHeaders(headers)
  const settings: Settings = {
    // The node bounds how many attempts run at a time.
    exchanger: openExchanger({
      baseUrl: target.origin,
      keepAliveMs: 0,
      maxSockets: Number.POSITIVE_INFINITY,
      ...(tls && { tls }),
    }),
    path: target.pathname + target.search,
    headers,
    timeoutMs,
    maxResultBytes,
    traceparent: options.traceparent ?? activeTraceparent,
  }
  return { run: (attempt) => run(settings, attempt) }
}

async function run(settings: Settings, attempt: Attempt): Promise<Outcome> {
  const { exchanger, path, timeoutMs, maxResultBytes } = settings
  try {
    const reply = await exchanger.exchange({
      method: 'POST',
      path,
      headers: {
        ...settings.headers,
        ...attemptHeaders(attempt),
        traceparent: traceparentOf(attempt, settings),
      },
      body: attempt.payload,
      signal: attempt.signal,
      deadlineMs: timeoutMs,
      maxReplyBytes,
      keepReplyBytes: Math.max(maxResultBytes, excerptBytes) + 4, // 4: whether the last character is whole
    })
    return answered(reply, { attempt, maxResultBytes, cut: false })
  } catch (error) {
    if (error instanceof ExchangeFailure) return failed(error, attempt, maxResultBytes)
    const detail = { message: messageOf(error) }
    if (error instanceof HoldfastError) return outcome('not_sent', 'invalid_request', detail)
    return outcome('outcome_unknown', 'executor_failed', detail)
  }
}

// The request

/** A tracer that fails stops no delivery. */
function traceparentOf(attempt: Attempt, settings: Settings): string {
  try {
    const given = settings.traceparent(attempt)
    if (given !== undefined && traceparentForm.test(given)) return given
  } catch {}
  return ownTraceparent(attempt)
}

// The reply

interface Answer {
  readonly attempt: Attempt
  readonly maxResultBytes: number
  /** The body's end never came. */
  readonly cut: boolean
}

function answered(reply: ExchangeReply, answer: Answer): Outcome {
  const stated = statedOutcome(reply)
  if (!isSuccess(reply)) {
    const kind = stated ?? kindOfStatus(reply.status)
    return outcome(kind, codeOf(kind, reply.status, answer.attempt), particularsOf(reply, answer.cut))
  }
  if (stated === undefined) return { kind: 'result', result: resultText(reply, answer) }
  return outcome('outcome_unknown', 'contradictory_reply', particularsOf(reply, answer.cut))
}

function failed(failure: ExchangeFailure, attempt: Attempt, maxResultBytes: number): Outcome {
  const { kind, sent, reply } = failure
  const detail = { message: messageOf(failure) }
  const code = kind === 'aborted' && isTimeout(failure.cause) ? 'timed_out' : kind
  if (!sent) return outcome('not_sent', code === 'refused' ? 'not_connected' : code, detail)
  if (reply === undefined) return outcome('outcome_unknown', code, detail)
  const gaveUp = kind === 'timed_out' || kind === 'aborted'
  if (!gaveUp || !isSuccess(reply)) return answered(reply, { attempt, maxResultBytes, cut: true })
  // The target still spoke when the limit came: 2xx at the head of a stream is no proof that it is done.
  return outcome('outcome_unknown', code, { ...particularsOf(reply, true), ...detail })
}

type Refusal = Exclude<Outcome['kind'], 'result'>

/** A word that is not understood, or contradicts the status, leaves it open what was done. */
function statedOutcome(reply: ExchangeReply): Refusal | undefined {
  const word = reply.headers[outcomeHeader]
  if (word === undefined || (word === 'result' && isSuccess(reply))) return undefined
  return word === 'not_sent' || word === 'terminal' ? word : 'outcome_unknown'
}

function kindOfStatus(status: number): Refusal {
  if (status === 421 || status === 425 || status === 429) return 'not_sent'
  if (status === 408 || status === 409 || status === 423) return 'outcome_unknown'
  return status >= 400 && status < 500 ? 'terminal' : 'outcome_unknown'
}

function codeOf(kind: Refusal, status: number, { target }: Attempt): string {
  const isGone = kind === 'terminal' && target.session !== undefined && (status === 404 || status === 410)
  return isGone ? 'target_session_missing' : `http_${status}`
}

function isSuccess({ status }: ExchangeReply): boolean {
  return status >= 200 && status < 300
}

/** As much of the body as the limit allows. Escapes make JSON longer than its bytes, so it may take turns. */
function resultText(reply: ExchangeReply, { maxResultBytes, cut }: Answer): string {
  const { status, headers, body, bodyBytes } = reply
  const contentType = headers['content-type']?.slice(0, maxHeaderChars)
  const head = { status, ...(contentType !== undefined && { contentType }) }
  if (!cut && body.length === bodyBytes && isJson(contentType, body)) {
    const text = `${JSON.stringify(head).slice(0, -1)},"json":${body.toString()}}`
    if (Buffer.byteLength(text) <= maxResultBytes) return text
  }
  for (let limit = maxResultBytes; ; ) {
    const kept = wholeCharacters(body, limit)
    const text = JSON.stringify({
      ...head,
      ...bodyFields(kept),
      ...(kept.length < bodyBytes && { truncated: true, bodyBytes }),
      ...(cut && { cut }),
    })
    const bytes = Buffer.byteLength(text)
    if (bytes <= maxResultBytes || kept.length === 0) return text
    limit = Math.floor(kept.length * Math.min(0.95, maxResultBytes / bytes))
  }
}

function bodyFields(kept: Buffer): { body: string } | { bodyBase64: string } {
  return isUtf8(kept) ? { body: kept.toString() } : { bodyBase64: kept.toString('base64') }
}

/** Also false for nesting so deep that whoever reads the result could not write it again. */
function isJson(contentType: string | undefined, body: Buffer): boolean {
  if (!/^(?:application\/json|[^;]*\+json)\s*(?:;|$)/i.test(contentType ?? '') || !isUtf8(body)) return false
  try {
    JSON.stringify(JSON.parse(body.toString()))
    return true
  } catch {
    return false
  }
}

function particularsOf(reply: ExchangeReply, cut: boolean): object {
  const { status, headers, body, bodyBytes } = reply
  const text = wholeCharacters(body, excerptBytes)
  const excerpt = isUtf8(text) ? text : body.subarray(0, excerptBase64Bytes)
  const retryAfter = headers['retry-after']?.slice(0, maxHeaderChars)
  return {
    status,
    ...(retryAfter !== undefined && { retryAfter }),
    ...(bodyBytes > 0 && bodyFields(excerpt)),
    ...(excerpt.length < bodyBytes && { truncated: true, bodyBytes }),
    ...(cut && { cut }),
  }
}

// Words

function outcome(kind: Refusal, errorCode: string, detail: object): Outcome {
  return { kind, errorCode, errorJson: JSON.stringify(detail) }
}
