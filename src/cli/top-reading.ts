import type { HeldEntry, UnknownEntry } from '../contract/delivery-views.js'
import type { FenceView, HostView } from '../contract/host-views.js'
import type { HubCalls } from '../contract/hub.js'
import type { Overview } from '../contract/overview.js'
import { settingIn } from '../contract/settings.js'

/** What changed in a second between two readings. */
export interface Rates {
  readonly accepted: number
  readonly done: number
  readonly terminal: number
}

/** One reading of all that `top` shows. */
export interface Snapshot {
  readonly overview: Overview
  /** From this reading and one before; absent for the first. */
  readonly rates?: Rates | undefined
  readonly hosts: readonly HostView[]
  readonly fences: readonly FenceView[]
  /** The oldest of the held queue and of the unknown list. */
  readonly held: readonly HeldEntry[]
  readonly unknown: readonly UnknownEntry[]
  /** Lists of which there is more than was read. */
  readonly more: readonly ('hosts' | 'held' | 'unknown')[]
  /** From when on a node that is not heard is silent. Milliseconds. */
  readonly staleAfterMs: number
}

/** More than a screen holds. */
const entriesAtMost = 100

/** Reads everything once. The rates are since the reading that is given. */
export async function readSnapshot(hub: HubCalls, before: Snapshot | undefined): Promise<Snapshot> {
  const page = { limit: entriesAtMost }
  const [overview, hosts, fences, held, unknown, settings] = await Promise.all([
    hub.overview(),
    hub.hostPage(page),
    hub.fences(),
    hub.heldPage(page),
    hub.unknownPage(page),
    hub.configuration(),
  ])
  const lists = { hosts, held, unknown }
  const names = ['hosts', 'held', 'unknown'] as const
  return {
    overview,
    rates: ratesOf(overview, before),
    hosts: hosts.entries,
    fences,
    held: held.entries,
    unknown: unknown.entries,
    more: names.filter((name) => lists[name].cursor !== undefined),
    staleAfterMs: settingIn(settings, 'stale_after_ms'),
  }
}

/** A hub may answer twice with what it read once: then the rates stay as they were. */
function ratesOf(now: Overview, before: Snapshot | undefined): Rates | undefined {
  if (before === undefined) return undefined
  const { overview: then } = before
  const seconds = (now.at - then.at) / 1000
  if (seconds <= 0) return before.rates
  const rate = (later: number, earlier: number) => Math.max(0, later - earlier) / seconds
  return {
    accepted: rate(now.recipients, then.recipients),
    done: rate(now.attempts.done, then.attempts.done),
    terminal: rate(now.attempts.terminal, then.attempts.terminal),
  }
}
