// I7: once everything runs again, what did not come to its end is in a list that tells why.
import { recorded } from './evidence.js'
import type { Case, FinalDelivery, Violation } from './words.js'

export function checkStalls(file: Case): Violation[] {
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

function whyStalled(
  { id, state, attempts, heldReason, reason }: FinalDelivery,
  unknown: ReadonlySet<string>,
  held: ReadonlySet<string>,
): string | undefined {
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

/** What is listed is what is there. */
function checkLists({ record, deliveries }: Case): Violation[] {
  const wrong = (id: string, text: string): Violation => ({
    invariant: 'I7',
    id,
    text,
    evidence: [`list ${id}`],
  })
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
