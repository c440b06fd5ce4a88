import { z } from 'zod'
import { headerText } from '../../contract/ids.js'
import { messageParams, messagesQuery, messagesReply } from '../../contract/wire.js'
import { access, requireSender } from '../access.js'
import type { Caller } from '../identities.js'
import { mayReadPayloads } from '../payload-access.js'
import { problem } from '../problem.js'
import { type App, type RouteParts, replies } from './parts.js'

/** Messages by pages, and what one of them carries. */
export function addMessageLists(app: App, parts: RouteParts): void {
  const { hub } = parts
  app.get(
    '/v1/messages',
    {
      config: { access: access.messages },
      schema: {
        operationId: 'listMessages',
        summary: 'Messages, the newest first, as far as the log reaches back; a producer sees its own',
        description:
          'A page looks at 2000 entries of the log at most: where few match, it may be empty and have a cursor all the same.',
        tags: ['messages'],
        querystring: messagesQuery,
        response: replies({ 200: messagesReply }),
      },
    },
    async (request) => {
      const sender = listedSender(request.caller, request.query.sender)
      const { entries, cursor } = await hub.messagePage({ ...request.query, sender })
      return { messages: entries, cursor }
    },
  )
  app.get(
    '/v1/messages/:id/payload',
    {
      config: { access: access.messages },
      schema: {
        operationId: 'getPayload',
        summary: 'The bytes of a message, exactly; for viewers only while `viewer_payloads` is 1',
        description:
          'Its media type is in `Holdfast-Content-Type`, percent-encoded, and the digest of the bytes in `Holdfast-SHA256`: no browser takes them for a page.',
        tags: ['messages'],
        params: messageParams,
        response: replies({ 200: bytesAnswer }),
      },
    },
    async (request, reply) => {
      const { caller, params } = request
      if (!(await mayReadPayloads(caller, parts))) {
        throw problem('FORBIDDEN', 'viewers read payloads only while viewer_payloads is 1', {
          current: caller.role,
        })
      }
      const [head] = (await hub.messagePage({ id: params.id })).entries
      if (head !== undefined) requireSender(caller, head.sender)
      const { bytes, contentType, sha256 } = await hub.payload(params.id)
      if (contentType !== undefined) reply.header('holdfast-content-type', headerText(contentType))
      return (
        reply
          .headers({
            'holdfast-sha256': sha256,
            'content-disposition': 'attachment',
            'cache-control': 'no-store',
            'content-security-policy': 'sandbox',
          })
          .type('application/octet-stream')
          // Bytes go as they are; a schema has no word for them.
          .send(Buffer.from(bytes) as unknown as string)
      )
    },
  )
}

const bytesAnswer = {
  description: 'the bytes',
  content: { 'application/octet-stream': { schema: z.string().meta({ format: 'binary' }) } },
}

/** Whose messages are listed: those of a producer are its own, unless it may name other senders. @throws FORBIDDEN */
function listedSender(caller: Caller, given: string | undefined): string | undefined {
  if (caller.role !== 'producer' || caller.anySender) return given
  requireSender(caller, given ?? caller.name)
  return caller.name
}
