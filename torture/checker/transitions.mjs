// @ts-check
// The transitions of contract section 3, written down a second time: what is judged does not bring its own law.

/** @type {Record<string, readonly string[]>} */
export const transitions = {
  none: ['queued'],
  queued: ['claimed', 'queued', 'held', 'failed', 'unknown'],
  claimed: ['claimed', 'mirrored', 'queued', 'held', 'failed', 'unknown'],
  mirrored: ['mirrored', 'delivered', 'queued', 'held', 'failed', 'unknown'],
  delivered: ['delivered', 'queued', 'held', 'failed', 'unknown'],
  held: ['queued', 'held', 'failed'],
  unknown: ['queued', 'held', 'failed'],
}

/** @param {string} from @param {string} to */
export function isTransition(from, to) {
  return transitions[from]?.includes(to) ?? false
}

/** How a settled attempt is written, by how its run ended. @type {Record<string, string>} */
export const statusOfOutcome = { result: 'done', terminal: 'terminal', not_sent: 'not_sent' }
