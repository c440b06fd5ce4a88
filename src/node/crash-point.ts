import { channel } from 'node:diagnostics_channel'

/** What a crash point tells whoever listens. */
export interface CrashPointReached {
  readonly name: string
}

/** Subscribed to by `crashTest` of `holdfast/testing`; by nobody in production. */
export const crashPointChannel = 'holdfast:crash-point'

const reached = channel(crashPointChannel)

/**
 * Names a moment within a handler at which its process may die, such as between the call that charges a card and the
 * return of its receipt. `crashTest` (`holdfast/testing`) ends the process there; in production it does nothing.
 * @param name a short word, the same at every call
 */
export function crashPoint(name: string): void {
  if (reached.hasSubscribers) reached.publish({ name } satisfies CrashPointReached)
}
