/** Exponential backoff with full jitter on its upper half. */
export interface Backoff {
  readonly leastMs: number
  readonly mostMs: number
}

/** Milliseconds to wait after the given number of failures in a row (from 1). */
export function backoffMs(backoff: Backoff, failures: number, random: () => number = Math.random): number {
  const ceiling = Math.min(backoff.mostMs, backoff.leastMs * 2 ** Math.min(failures - 1, 30))
  return Math.round(ceiling / 2 + random() * (ceiling / 2))
}
