// @ts-check
// I1: every recipient of every accepted message has exactly one delivery.
import { recorded, told } from './evidence.mjs'

/** @typedef {import('./words.mjs').Accept} Accept */
/** @typedef {import('./words.mjs').Case} Case */
/** @typedef {import('./words.mjs').FinalMessage} FinalMessage */
/** @typedef {import('./words.mjs').Violation} Violation */

/** @param {Case} file @returns {Violation[]} */
export function checkConservation(file) {
  return [...checkAnswers(file), ...checkMessages(file), ...checkOrphans(file)]
}

/** What was answered is there, as it was asked for. A message that is not there at all is told under I8. @param {Case} file @returns {Violation[]} */
function checkAnswers(file) {
  /** @type {Set<string>} */
  const looked = new Set()
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

/** @param {Case} file @param {Accept} accept @returns {Violation[]} */
function checkDeliveries(file, accept) {
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

/** @param {string} id @param {string} text @param {Accept} accept @returns {Violation} */
function lost(id, text, { answer }) {
  return { invariant: 'I1', id, text, evidence: [told(answer)], means: 'lost' }
}

/** @param {Accept} accept @param {FinalMessage} message @returns {Violation[]} */
function checkContent(accept, message) {
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

/** @param {Case} file @param {Accept} accept @returns {Violation[]} */
function checkRecipients(file, { id = '', to, invoke }) {
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
      ...(missing.length > 0 ? { means: /** @type {const} */ ('lost') } : {}),
    },
  ]
}

/** What an obligation will still make is not missing; that it is owed at the end is told under I7. @param {Case} file @param {number} surplus */
function isOwed({ record }, surplus) {
  return surplus < 0 && record.audit.conservation.owed > 0
}

/** @param {{ host?: string, session?: string }} recipient */
function nameOf({ host, session }) {
  return session === undefined ? `host ${host}` : `session ${session}`
}

/** Also of what nobody got an answer to: accepted is accepted wholly. @param {Case} file @returns {Violation[]} */
function checkMessages(file) {
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

/** @param {Case} file @returns {Violation[]} */
function checkOrphans(file) {
  return file.record.deliveries.flatMap((delivery) => {
    if (file.messages.has(delivery.message)) return []
    const text = `its message ${delivery.message} is not in the record`
    return [{ invariant: 'I1', id: delivery.id, text, evidence: [recorded(delivery)] }]
  })
}
