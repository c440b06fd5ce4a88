// @ts-check
// I7: once everything runs again, what did not come to its end is in a list that tells why.
import { recorded } from './evidence.mjs'

/** @typedef {import('./words.mjs').Case} Case */
/** @typedef {import('./words.mjs').FinalDelivery} FinalDelivery */
/** @typedef {import('./words.mjs').Violation} Violation */

/** @param {Case} file @returns {Violation[]} */
export function checkStalls(file) {
  const unknown = new Set(file.record.unknown.map(({ id }) => id))
  const held = new Set(file.record.held.map(({ id }) => id))
  const stalls = file.record.deliveries.flatMap((delivery) => {
    const text = whyStalled(delivery, unknown, held)
    return text === undefined
      ? []
      : [{ invariant: 'I7', id: delivery.id, text, evidence: [recorded(delivery)] }]
  })
  return [...stalls, ...checkLists(file)]
}

/** @param {FinalDelivery} delivery @param {Set<string>} unknown @param {Set<string>} held @returns {string | undefined} */
function whyStalled({ id, state, attempts, heldReason, reason }, unknown, held) {
  const last = attempts.at(-1)
  switch (state) {
    case 'held':
      if (!held.has(id)) return 'held, but the held queue does not list it'
      return (heldReason ?? reason) ? undefined : 'held, and nothing says why'
    case 'failed':
      return undefined
    case 'unknown':
      return unknown.has(id) ? undefined : 'unknown, but the unknown list does not name it'
    case 'delivered':
      if (last?.status === 'done' || last?.status === 'terminal') return undefined
      if (last?.status !== 'executing') return 'handed off and not begun, though everything runs again'
      return unknown.has(`${id}/${last.number}`) ? undefined : 'open, but the unknown list does not name it'
    default:
      return `left ${state}, though everything runs again`
  }
}

/** What is listed is what is there. @param {Case} file @returns {Violation[]} */
function checkLists({ record, deliveries }) {
  /** @param {string} id @param {string} text @returns {Violation} */
  const wrong = (id, text) => ({ invariant: 'I7', id, text, evidence: [`list ${id}`] })
  const unknown = record.unknown.flatMap(({ id }) => {
    const [delivery = '', number] = id.split('/')
    const found = deliveries.get(delivery)
    if (number === undefined)
      return found?.state === 'unknown' ? [] : [wrong(id, 'listed as unknown, but it is not')]
    const attempt = found?.attempts.find((each) => each.number === Number(number))
    return attempt?.status === 'executing' ? [] : [wrong(id, 'listed as unknown, but it is not open')]
  })
  const held = record.held.flatMap(({ id }) =>
    deliveries.get(id)?.state === 'held' ? [] : [wrong(id, 'listed as held, but it is not')],
  )
  return [...unknown, ...held]
}
