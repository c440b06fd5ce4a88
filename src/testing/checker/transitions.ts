// The transitions of contract section 3, written down a second time: what is judged does not bring its own law.

export const transitions: Record<string, readonly string[]> = {
  none: ['queued'],
  queued: ['claimed', 'queued', 'held', 'failed', 'unknown'],
  claimed: ['claimed', 'mirrored', 'queued', 'held', 'failed', 'unknown'],
  mirrored: ['mirrored', 'delivered', 'queued', 'held', 'failed', 'unknown'],
  delivered: ['delivered', 'queued', 'held', 'failed', 'unknown'],
  held: ['queued', 'held', 'failed'],
  unknown: ['queued', 'held', 'failed'],
}

export function isTransition(from: string, to: string): boolean {
  return transitions[from]?.includes(to) ?? false
}

/** How a settled attempt is written, by how its run ended. */
export const statusOfOutcome: Record<string, string> = {
  result: 'done',
  terminal: 'terminal',
  not_sent: 'not_sent',
}
