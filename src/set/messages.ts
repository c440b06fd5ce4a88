import { HoldfastError } from '../contract/errors.js'
import type { HubCalls } from '../contract/hub.js'
import { partsOfId } from '../contract/hub-set.js'
import type { OutgoingMessage, Recipient } from '../contract/message.js'
import type { MessageHead } from '../contract/overview.js'
import { type Member, type Members, only } from './members.js'
import { newestOfAll } from './newest.js'
import { acceptedOf, deliveryOf, messageHeadOf, messageOf, withId } from './qualified.js'

type MessageCalls = Pick<
  HubCalls,
  'accept' | 'resend' | 'message' | 'messagePage' | 'payload' | 'waitFor' | 'delivery' | 'why'
>

/** Messages and their deliveries: every call is one call of one hub, but for the list of them. */
export function messageCalls(members: Members): MessageCalls {
  return {
    accept: async (message) => {
      const member = members.ofConversation(message.conversation)
      return acceptedOf(member.hub, await member.calls.accept(ownMessage(members, member, message)))
    },
    resend: async (given, { key, to }) => {
      const { id, ...member } = members.ofId(given)
      const recipients = to === undefined ? {} : { to: ownRecipients(members, member, to) }
      return acceptedOf(member.hub, await member.calls.resend(id, { key, ...recipients }))
    },
    message: async (given) => {
      const { hub, calls, id } = members.ofId(given)
      return messageOf(hub, await calls.message(id))
    },
    messagePage: (filter = {}) => {
      const named = filter.id === undefined ? undefined : members.ofId(filter.id)
      const places = named === undefined ? members : only(members, named)
      return newestOfAll<MessageHead>(places, filter, async ({ hub, calls }, page) => {
        const own = named === undefined ? filter : { ...filter, id: named.id }
        const { entries, cursor } = await calls.messagePage({ ...own, ...page })
        return { entries: entries.map((head) => messageHeadOf(hub, head)), cursor }
      })
    },
    payload: async (given) => {
      const { calls, id } = members.ofId(given)
      return calls.payload(id)
    },
    waitFor: async (given, timeoutMs, signal) => {
      const { hub, calls, id } = members.ofId(given)
      return messageOf(hub, await calls.waitFor(id, timeoutMs, signal))
    },
    delivery: async (given) => {
      const { hub, calls, id } = members.ofId(given)
      return deliveryOf(hub, await calls.delivery(id))
    },
    why: async (given) => {
      const { hub, calls, id } = members.ofId(given)
      return withId(hub, await calls.why(id))
    },
  }
}

/** The message as its hub takes it. @throws INVALID_ARGUMENT for what lives on another hub */
function ownMessage(members: Members, member: Member, message: OutgoingMessage): OutgoingMessage {
  const { to, resendOf } = message
  return {
    ...message,
    // What is no list is for the hub to refuse.
    ...(Array.isArray(to) ? { to: ownRecipients(members, member, to) } : {}),
    ...(resendOf === undefined ? {} : { resendOf: ownOf(members, member, resendOf, 'the message') }),
  }
}

function ownRecipients(members: Members, member: Member, to: readonly Recipient[]): Recipient[] {
  return to.map((each) =>
    'session' in each ? { ...each, session: ownSession(members, member, each.session) } : each,
  )
}

/** A session as the hub calls it: named with that hub before it, or plainly. @throws INVALID_ARGUMENT */
function ownSession(members: Members, member: Member, session: string): string {
  const named = members.names.some((hub) => String(session).startsWith(`${hub}:`))
  return named ? ownOf(members, member, session, 'the session') : session
}

function ownOf(members: Members, { hub }: Member, given: string, what: string): string {
  const { hub: its, id } = partsOfId(given, members.names)
  if (its === hub) return id
  throw new HoldfastError(
    'INVALID_ARGUMENT',
    `${what} ${given} is on hub ${its}; the conversation is on ${hub}`,
    {
      current: given,
      next: `a message and all that it names live on one hub: open the session on ${hub} too, or take a conversation of ${its} (\`holdfast hub-of\`)`,
    },
  )
}
