import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { type ErrorCode, errorCatalogue, HoldfastError, isHoldfastError } from '../contract/errors.js'
import type { Problem } from '../contract/wire.js'

/** Where in a request something is wrong, and what was given there. */
export interface Particulars {
  /** JSON pointer: `#/to/0/host` in the body, `header:…`, `query:…` or `path:…` elsewhere. */
  readonly pointer?: string
  readonly current?: unknown
  readonly errors?: Problem['errors']
  readonly retryAfterSeconds?: number
  /** Where HTTP has a finer word than the catalogue's. */
  readonly status?: number
}

const particulars = new WeakMap<HoldfastError, Particulars>()

/** An error of the catalogue that says where in the request it lies. */
export function problem(code: ErrorCode, detail: string, where: Particulars = {}): HoldfastError {
  const error = new HoldfastError(code, detail)
  particulars.set(error, where)
  return error
}

const retryAfterSeconds: Partial<Record<ErrorCode, number>> = {
  STORE_UNAVAILABLE: 1,
  STORE_UNKNOWN: 5,
  NOT_ATTESTED: 1,
  DEADLINE_EXCEEDED: 1,
  NOT_REPLICATED: 1,
  OVERLOADED: 1,
  SHUTTING_DOWN: 1,
  RATE_LIMITED: 1,
  HOST_FULL: 5,
}

/** Answers an error as `application/problem+json` (RFC 9457). */
export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = knownError(error, request)
  const after = particulars.get(known)?.retryAfterSeconds ?? retryAfterSeconds[known.code]
  const body = { ...problemOf(known), requestId: request.id }
  if (after !== undefined) reply.header('retry-after', String(after))
  if (body.status === 401) reply.header('www-authenticate', 'Bearer realm="holdfast"')
  // Fastify closes where a body was not read to its end: clients that still send it would miss this answer.
  reply.removeHeader('connection')
  return reply
    .code(body.status)
    .header('content-type', 'application/problem+json')
    .serializer((value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value)))
    .send(body)
}

/** An error as a problem of RFC 9457. */
export function problemOf(known: HoldfastError): Problem {
  const { status, pointer, current, errors } = particulars.get(known) ?? {}
  const entry = errorCatalogue[known.code]
  return {
    type: `urn:holdfast:problem:${known.code.toLowerCase()}`,
    title: entry.cause,
    status: status ?? entry.status,
    code: known.code,
    detail: known.message.slice(known.code.length + 1),
    next: known.next,
    ...(pointer === undefined ? {} : { pointer }),
    ...(current === undefined ? {} : { current }),
    ...(errors === undefined ? {} : { errors }),
  }
}

function knownError(error: unknown, request: FastifyRequest): HoldfastError {
  // Whoever asks did not close this hub, and finds it again.
  if (isHoldfastError(error, 'CLOSED')) return problem('SHUTTING_DOWN', 'this hub was closed')
  if (isHoldfastError(error)) return error
  const code = (error as Partial<FastifyError> | undefined)?.code
  if (code !== undefined && code in byFastifyCode) {
    const [ours, detail] = byFastifyCode[code as keyof typeof byFastifyCode]
    return problem(ours, detail)
  }
  const status = (error as Partial<FastifyError> | undefined)?.statusCode
  if (status !== undefined && status >= 400 && status < 500) {
    return problem('INVALID_ARGUMENT', 'the request is malformed')
  }
  request.log.error({ err: error }, 'a fault of the hub')
  return problem('INTERNAL', `request ${request.id} failed by a fault of the hub`)
}

const byFastifyCode = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['UNSUPPORTED_MEDIA_TYPE', 'the body is no application/json'],
  FST_ERR_CTP_BODY_TOO_LARGE: ['BODY_TOO_LARGE', 'the body is over the limit of this route'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['INVALID_ARGUMENT', 'Content-Length is not the length of the body'],
  FST_ERR_CTP_EMPTY_JSON_BODY: ['INVALID_ARGUMENT', 'the body is empty'],
  FST_ERR_BAD_URL: ['INVALID_ARGUMENT', 'the path is not well-formed'],
  FST_ERR_MAX_PARAM_LENGTH: ['INVALID_ARGUMENT', 'a part of the path is too long'],
} as const satisfies Record<string, readonly [ErrorCode, string]>
