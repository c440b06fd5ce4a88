import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ErrorCode } from '../contract/errors.js'
import { problem, problemOf } from './problem.js'

/** The latest answer of each connection, and all that are not over. */
const latest = new WeakMap<Socket, ServerResponse>()
const unanswered = new WeakMap<Socket, Set<ServerResponse>>()

/**
 * Follows the answers on each connection. Where it ends before them, node tells only the one whose turn it is;
 * those behind it, of requests sent ahead, would keep what they hold for ever.
 */
export function followAnswers(server: Server): void {
  server.on('request', followAnswer)
}

export function followAnswer({ socket }: IncomingMessage, response: ServerResponse): void {
  latest.set(socket, response)
  const answers = unanswered.get(socket) ?? followConnection(socket)
  answers.add(response)
  response.once('close', () => answers.delete(response))
}

function followConnection(socket: Socket): Set<ServerResponse> {
  const answers = new Set<ServerResponse>()
  unanswered.set(socket, answers)
  socket.once('close', () => {
    for (const response of answers) if (response.socket === null) response.emit('close')
  })
  return answers
}

/** What is no HTTP, or came too slowly, is told so, unless that could be taken for another answer; then closed. */
export function refuseMalformed(error: Error & { code?: string }, socket: Socket): void {
  const refusal = refusals[error.code ?? ''] ?? (error.code?.startsWith('HPE_') ? notHttp : undefined)
  // Nothing goes out where the connection failed, or its TLS: that would be waited for without end.
  if (refusal === undefined || !socket.writable || !mayTell(latest.get(socket))) return void socket.destroy()
  socket.end(textOf(refusal))
  socket.destroySoon()
}

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
