import type { LogFilter } from './log-filter.js'
import type { Event } from './wire-log.js'

/** From where the log is read, and which of its entries. */
export interface EventsOptions extends LogFilter {
  /** Begin after this event; from now on when absent. Of a set: the last event of each hub, by its name. */
  readonly lastEventId?: string | Readonly<Record<string, string>> | undefined
  /** Ends the reading. */
  readonly signal?: AbortSignal | undefined
}

/**
 * One entry of the hub's log, or a `gap` where the log no longer reaches back. Of a set it says which hub's log; the
 * id is the place in that one.
 */
export type HubEvent = (
  | { readonly kind: 'entry'; readonly id: string; readonly entry: Event }
  | { readonly kind: 'gap'; readonly id: string; readonly after: string; readonly first: string }
) & { readonly hub?: string }
