import type { z } from 'zod'
import { messageViewSchema } from '../contract/delivery-views.js'
import { HoldfastError } from '../contract/errors.js'
import type { Accepted, HubCalls } from '../contract/hub.js'
import { type OutgoingMessage, prepareMessage } from '../contract/message.js'
import { requireMs } from '../contract/time-limit.js'
import { acceptedReply, messagesReply } from '../contract/wire.js'
import { longestWaitMs } from '../contract/wire-parts.js'
import type { Answer, Calls } from './calls.js'
import { part, query } from './paths.js'

type MessageCalls = Pick<HubCalls, 'accept' | 'resend' | 'message' | 'messagePage' | 'payload' | 'waitFor'>

/** Messages: accepted, sent again, read, waited for. */
export function messageCalls(calls: Calls): MessageCalls {
  const read = async (id: string, waitMs = 0, signal?: AbortSignal) => {
    const path = `/v1/messages/${part(id)}${query({ waitMs: waitMs === 0 ? undefined : Math.ceil(waitMs) })}`
    const given = signal === undefined ? {} : { signal }
    const deadline = waitMs === 0 ? {} : { deadlineMs: waitMs + 10_000, waits: true }
    return (await calls.repeat({ method: 'GET', path, reply: messageViewSchema, ...deadline, ...given }))
      .value
  }
  return {
    accept: async (message) => {
      const headers = keyHeader(message.key)
      const body = messageBodyOf(message)
      return acceptedOf(
        await calls.repeat({ method: 'POST', path: '/v1/messages', headers, body, reply: acceptedReply }),
      )
    },
    resend: async (id, { key, to }) => {
      const path = `/v1/messages/${part(id)}/resend`
      const headers = keyHeader(key)
      const body = to === undefined ? {} : { to }
      return acceptedOf(await calls.repeat({ method: 'POST', path, headers, body, reply: acceptedReply }))
    },
    message: (id) => read(id),
    messagePage: async ({ id, key, conversation, sender, cursor, limit } = {}) => {
      const path = `/v1/messages${query({ id, key, conversation, sender, cursor, limit })}`
      const { value } = await calls.repeat({ method: 'GET', path, reply: messagesReply })
      return { entries: value.messages, cursor: value.cursor }
    },
    payload: async (id) => {
      const { body, headers } = await calls.bytes(`/v1/messages/${part(id)}/payload`)
      const contentType = headers['holdfast-content-type']
      return {
        bytes: body,
        ...(typeof contentType === 'string' ? { contentType: decodeURIComponent(contentType) } : {}),
        sha256: String(headers['holdfast-sha256'] ?? ''),
      }
    },
    waitFor: async (id, timeoutMs, signal) => {
      requireMs('timeoutMs', timeoutMs)
      const deadlineAt = performance.now() + timeoutMs
      while (!signal?.aborted) {
        const leftMs = Math.max(0, deadlineAt - performance.now())
        try {
          const view = await read(id, Math.min(leftMs, longestWaitMs / 2), signal)
          if (view.settledAt !== undefined || performance.now() >= deadlineAt) return view
        } catch (error) {
          if (!signal?.aborted) throw error
        }
      }
      return await read(id)
    },
  }
}

/** HTTP takes blanks off the ends of a header: such a key would become another one. @throws INVALID_ARGUMENT */
function keyHeader(key: string): Readonly<Record<string, string>> {
  if (key.trim() === key) return { 'idempotency-key': key }
  throw new HoldfastError('INVALID_ARGUMENT', 'over HTTP a key has no blank at its ends', {
    next: 'choose another key',
  })
}

/** Bytes travel as base64: they arrive as they are. @throws INVALID_ARGUMENT */
function messageBodyOf(message: OutgoingMessage): object {
  const { sender, resendOf } = message
  if (resendOf !== undefined) {
    throw new HoldfastError('INVALID_ARGUMENT', 'over HTTP a message is sent again by resend()')
  }
  const checked = prepareMessage({ ...message, sender: sender ?? principalOfTheCall })
  const { payload, contentType, parent, deliverBy, executeBy } = checked
  return {
    conversation: message.conversation,
    ...(sender === undefined ? {} : { sender }),
    to: message.to,
    payloadBase64: payload.toString('base64'),
    ...(contentType === '' ? {} : { contentType }),
    ...(parent === '' ? {} : { parent }),
    ...(deliverBy === '' ? {} : { deliverBy: Number(deliverBy) }),
    ...(executeBy === '' ? {} : { executeBy: Number(executeBy) }),
  }
}

/** Stands for the sender in checks before the call: the hub knows who it is. */
const principalOfTheCall = 'principal'

function acceptedOf({ value, headers }: Answer<z.output<typeof acceptedReply>>): Accepted {
  return { ...value, replayed: headers['idempotency-replayed'] === 'true' }
}
