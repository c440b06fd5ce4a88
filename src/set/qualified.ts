import type {
  AttemptView,
  DeliveryView,
  HeldEntry,
  MessageView,
  UnknownEntry,
} from '../contract/delivery-views.js'
import type { EffectView } from '../contract/effect-views.js'
import type { PendingEntry } from '../contract/host-views.js'
import type { Accepted } from '../contract/hub.js'
import { qualifiedId } from '../contract/hub-set.js'
import type { MessageHead } from '../contract/overview.js'
import type { SessionReply, SessionView } from '../contract/session-views.js'

// What one hub answers, with its ids as a set says them. Message keys, hosts, nodes and conversations stay as they
// are: they mean the same on every hub, or are no ids of the record.

/** The member under its name with the hub before it, where it is there. */
function own<Name extends string>(
  hub: string,
  name: Name,
  id: string | undefined,
): { [Each in Name]?: string } {
  return id === undefined ? {} : ({ [name]: qualifiedId(hub, id) } as { [Each in Name]: string })
}

export function acceptedOf(hub: string, accepted: Accepted): Accepted {
  return {
    ...accepted,
    id: qualifiedId(hub, accepted.id),
    deliveries: accepted.deliveries.map((each) => ({
      ...each,
      id: qualifiedId(hub, each.id),
      ...own(hub, 'session', each.session),
    })),
  }
}

export function messageOf(hub: string, view: MessageView): MessageView {
  return {
    ...view,
    id: qualifiedId(hub, view.id),
    ...own(hub, 'resendOf', view.resendOf),
    deliveries: view.deliveries.map((each) => deliveryOf(hub, each)),
  }
}

export function messageHeadOf(hub: string, head: MessageHead): MessageHead {
  return { ...head, id: qualifiedId(hub, head.id), ...own(hub, 'resendOf', head.resendOf) }
}

export function deliveryOf(hub: string, view: DeliveryView): DeliveryView {
  return {
    ...view,
    id: qualifiedId(hub, view.id),
    message: qualifiedId(hub, view.message),
    ...own(hub, 'session', view.session),
    attempts: view.attempts.map((attempt): AttemptView => ({ ...attempt, id: qualifiedId(hub, attempt.id) })),
  }
}

/** Anything of one id, and perhaps of an entry of the log. */
export function withId<View extends { readonly id: string; readonly logId?: string }>(
  hub: string,
  view: View,
): View {
  return { ...view, id: qualifiedId(hub, view.id), ...own(hub, 'logId', view.logId) }
}

export function heldOf(hub: string, entry: HeldEntry): HeldEntry {
  return withId(hub, entry)
}

/** An effect stands in the unknown list as `effect:<id>`: what follows that word is its id, here too. */
export function unknownOf(hub: string, entry: UnknownEntry): UnknownEntry {
  const [, effect] = /^effect:(.*)$/.exec(entry.id) ?? []
  return effect === undefined ? withId(hub, entry) : { ...entry, id: `effect:${qualifiedId(hub, effect)}` }
}

export function pendingOf(hub: string, entry: PendingEntry): PendingEntry {
  return { ...entry, hub, ...own(hub, 'delivery', entry.delivery) }
}

export function sessionReplyOf(hub: string, reply: SessionReply): SessionReply {
  return { ...reply, session: qualifiedId(hub, reply.session), logId: qualifiedId(hub, reply.logId) }
}

export function sessionOf(hub: string, view: SessionView): SessionView {
  return {
    ...view,
    session: qualifiedId(hub, view.session),
    ...own(hub, 'parent', view.parent),
    ...own(hub, 'missingAttempt', view.missingAttempt),
  }
}

export function effectOf(hub: string, view: EffectView): EffectView {
  return withId(hub, view)
}
