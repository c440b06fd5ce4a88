import type { ErrorCode } from '../../../src/contract/errors.js'
import { hold } from './moves.js'
import type { ModelHub, ModelMessage, Witness } from './state.js'

export interface ModelAccept {
  readonly key: string
  readonly fingerprint: string
  readonly conversation: string
  readonly recipients: readonly string[]
  /** Its deadlines lie in the past. */
  readonly deliverLate: boolean
  readonly executeLate: boolean
}

export type AcceptAnswer =
  | { readonly ok: true; readonly id: string; readonly replayed: boolean; readonly made: readonly Made[] }
  | { readonly ok: false; readonly code: ErrorCode }

export interface Made {
  readonly id: string
  readonly host: string
  readonly state: string
}

function hostOf(hub: ModelHub, recipient: string): string | undefined {
  const name = recipient.slice(recipient.indexOf(':') + 1)
  return recipient.startsWith('host:') ? name : hub.sessions[name]
}

export function accept(hub: ModelHub, call: ModelAccept, witness: Witness): AcceptAnswer {
  const known = hub.keys[call.key]
  if (known !== undefined) {
    if (hub.messages[known]?.fingerprint !== call.fingerprint) {
      return { ok: false, code: 'IDEMPOTENCY_MISMATCH' }
    }
    return { ok: true, id: known, replayed: true, made: [] }
  }
  const recipients = [...new Set(call.recipients)]
  for (const recipient of recipients) {
    const host = hostOf(hub, recipient)
    if (host === undefined) return { ok: false, code: 'NO_ROUTE' }
    if (hub.hosts[host]?.retired === true) return { ok: false, code: 'HOST_RETIRED' }
  }
  const id = witness.minted ?? ''
  const { key, fingerprint, conversation, deliverLate, executeLate } = call
  const message = { id, key, fingerprint, conversation, recipients, deliverLate, executeLate, made: 0 }
  hub.messages[id] = message
  hub.keys[key] = id
  return { ok: true, id, replayed: false, made: make(hub, message, hub.settings.inlineFanOut) }
}

export function fanOut(hub: ModelHub, id: string, chunk: number): AcceptAnswer {
  const message = hub.messages[id]
  if (message === undefined) return { ok: false, code: 'MESSAGE_NOT_FOUND' }
  return { ok: true, id, replayed: false, made: make(hub, message, chunk) }
}

/** The next deliveries of a message: queued, or held where the host was retired meanwhile. */
function make(hub: ModelHub, message: ModelMessage, count: number): Made[] {
  const owed = message.recipients.slice(message.made, message.made + count)
  return owed.map((recipient) => {
    const host = hostOf(hub, recipient) ?? ''
    hub.hosts[host] ??= { retired: false }
    message.made += 1
    hub.serial += 1
    const id = `${message.id}.${message.made}`
    const delivery = {
      id,
      message: message.id,
      host,
      ...(recipient.startsWith('session:') ? { session: recipient.slice('session:'.length) } : {}),
      conversation: message.conversation,
      state: 'queued' as const,
      epoch: 0,
      place: hub.serial,
      parked: false,
      takeovers: 0,
      attempts: [],
      redriveFrom: 0,
      deliverLate: message.deliverLate,
      executeLate: message.executeLate,
    }
    hub.deliveries[id] = delivery
    if (hub.hosts[host]?.retired === true) hold(hub, delivery, 'retired')
    return { id, host, state: delivery.state }
  })
}
