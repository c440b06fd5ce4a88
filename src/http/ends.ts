import { setMaxListeners } from 'node:events'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** An end that any number of calls may listen for. */
export function sharedEnd(): AbortController {
  const end = new AbortController()
  setMaxListeners(0, end.signal)
  return end
}

/** Aborted when the client has gone, the principal is revoked, or the server closes. */
export function callSignal(request: FastifyRequest, reply: FastifyReply, closing: AbortSignal): AbortSignal {
  // Not AbortSignal.any: on signals that live as long as the server it leaves something behind for each call.
  const over = new AbortController()
  const longLived = [request.caller.signal, closing]
  const end = () => over.abort()
  for (const signal of longLived) {
    if (signal.aborted) end()
    signal.addEventListener('abort', end, { once: true })
  }
  reply.raw.once('close', () => {
    for (const signal of longLived) signal.removeEventListener('abort', end)
    end()
  })
  return over.signal
}
