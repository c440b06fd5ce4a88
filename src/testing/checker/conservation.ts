// I1: every recipient of every accepted message has exactly one delivery.
import { recorded, told } from './evidence.js'
import type { Accept, Case, FinalMessage, RecipientName, Violation } from './words.js'

export function checkConservation(file: Case): Violation[] {
  return [...checkAnswers(file), ...checkMessages(file), ...checkOrphans(file)]
}

/** What was answered is there, as it was asked for. A message that is not there at all is told under I8. */
function checkAnswers(file: Case): Violation[] {
  const looked = new Set<string>()
  return file.accepts.flatMap((accept) => {
    const message = file.messages.get(accept.id ?? '')
    if (accept.type !== 'ok' || message === undefined || accept.changed) return []
    // A repeat may know more of the deliveries than the first answer did.
    const known = `${message.id} ${accept.deliveries.map(({ id, host }) => `${id}@${host}`).join(' ')}`
    if (looked.has(known)) return []
    looked.add(known)
    return [
      ...checkDeliveries(file, accept),
      ...checkContent(accept, message),
      ...checkRecipients(file, accept),
    ]
  })
}

function checkDeliveries(file: Case, accept: Accept): Violation[] {
  return accept.deliveries.flatMap(({ id, host }) => {
    const found = file.deliveries.get(id)
    if (found === undefined) return [lost(id, 'acknowledged, but the record has no such delivery', accept)]
    if (found.message !== accept.id)
      return [lost(id, `belongs to ${found.message}, not to ${accept.id}`, accept)]
    // A session takes its deliveries along where it goes.
    if (found.host === host || found.session !== undefined) return []
    return [lost(id, `acknowledged for host ${host}, but it is on ${found.host}`, accept)]
  })
}

function lost(id: string, text: string, { answer }: Accept): Violation {
  return { invariant: 'I1', id, text, evidence: [told(answer)], means: 'lost' }
}

function checkContent(accept: Accept, message: FinalMessage): Violation[] {
  const wrong =
    message.sha256 !== accept.digest
      ? `its payload has digest ${message.sha256}, accepted was ${accept.digest}`
      : message.conversation !== accept.conversation
        ? `it is of conversation ${message.conversation}, accepted was ${accept.conversation}`
        : undefined
  if (wrong === undefined) return []
  return [
    { invariant: 'I1', id: message.id, text: wrong, evidence: [told(accept.invoke), told(accept.answer)] },
  ]
}

function checkRecipients(file: Case, { id = '', to, invoke }: Accept): Violation[] {
  const deliveries = file.deliveriesOf.get(id) ?? []
  const wanted = [...new Set(to.map(nameOf))]
  const found = deliveries.map(nameOf)
  const missing = wanted.filter((name) => !found.includes(name))
  const surplus = deliveries.length - wanted.length
  if ((missing.length === 0 && surplus === 0) || isOwed(file, surplus)) return []
  const what = missing.length > 0 ? `no delivery for ${missing.join(', ')}` : `${surplus} deliveries too many`
  const evidence = [told(invoke), ...deliveries.map(recorded)]
  return [
    {
      invariant: 'I1',
      id,
      text: what,
      evidence,
      ...(missing.length > 0 ? { means: 'lost' as const } : {}),
    },
  ]
}

/** What an obligation will still make is not missing; that it is owed at the end is told under I7. */
function isOwed({ record }: Case, surplus: number): boolean {
  return surplus < 0 && record.audit.conservation.owed > 0
}

function nameOf({ host, session }: RecipientName): string {
  return session === undefined ? `host ${host}` : `session ${session}`
}

/** Also of what nobody got an answer to: accepted is accepted wholly. */
function checkMessages(file: Case): Violation[] {
  return file.record.messages.flatMap((message) => {
    const { id, recipients } = message
    const wanted = Array.isArray(recipients) ? recipients.length : recipients
    const deliveries = file.deliveriesOf.get(id) ?? []
    if (deliveries.length === wanted || isOwed(file, deliveries.length - wanted)) return []
    const text = `${wanted} recipients, but ${deliveries.length} deliveries`
    return [
      {
        invariant: 'I1',
        id,
        text,
        evidence: [`record ${JSON.stringify(message)}`, ...deliveries.map(recorded)],
      },
    ]
  })
}

function checkOrphans(file: Case): Violation[] {
  return file.record.deliveries.flatMap((delivery) => {
    if (file.messages.has(delivery.message)) return []
    const text = `its message ${delivery.message} is not in the record`
    return [{ invariant: 'I1', id: delivery.id, text, evidence: [recorded(delivery)] }]
  })
}
