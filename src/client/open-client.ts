import { z } from 'zod'
import type { HubCalls } from '../contract/hub.js'
import { checkOptions, hubAddress, hubSet, option, optionsOf } from '../contract/options.js'
import { type HubAddress, openCalls } from './calls.js'
import { clientSetOf } from './client-set.js'
import { effectCalls } from './effect-calls.js'
import { readEvents } from './events.js'
import { listCalls } from './list-calls.js'
import { messageCalls } from './message-calls.js'
import { administrationCalls, operatorCalls } from './operator-calls.js'
import { escaped } from './paths.js'
import { sessionCalls } from './session-calls.js'
import { type SweepCalls, sweepCalls } from './sweep-calls.js'

/** Options of {@link openClient}. */
export interface ClientOptions extends HubAddress {
  /** Milliseconds in which a call must be answered; 10,000 when absent. */
  readonly deadlineMs?: number | undefined
  /** Who acts, where the hub has no principals yet (on loopback); else the principal is. */
  readonly actor?: string | undefined
  /**
   * The hubs of the set that is served at the URL: `hubNames('hf-0..hf-7')`. Each is reached at
   * `<url>/hubs/<name>`; a single one at the URL itself, as `serve` serves it.
   */
  readonly hubs?: readonly string[] | undefined
}

/** A hub over HTTP: the calls of {@link HubCalls}, and its sweeps. */
export interface Client extends HubCalls, SweepCalls {}

const form = optionsOf<ClientOptions>({
  ...hubAddress,
  deadlineMs: option.count,
  actor: z.string().optional(),
  hubs: hubSet.optional(),
})

/**
 * Opens a client of a hub over HTTP (contract section 10). Nothing is connected before the first call. Reads
 * and accepts are repeated by themselves within the deadline; an operator's act is made once.
 * @throws INVALID_ARGUMENT for options that are none, and for a URL, token or TLS material that cannot be used
 */
export function openClient(options: ClientOptions): Client {
  checkOptions('openClient', form, options)
  const { hubs: names = [], ...common } = options
  if (names.length < 2) return openOne(common)
  const below = (hub: string) => `${common.url.replace(/\/+$/, '')}/hubs/${hub}`
  return clientSetOf(new Map(names.map((hub) => [hub, openOne({ ...common, url: below(hub) })])))
}

function openOne(options: Omit<ClientOptions, 'hubs'>): Client {
  const calls = openCalls(options)
  const acting = options.actor === undefined ? {} : { 'holdfast-actor': escaped(options.actor) }
  const closing = new AbortController()
  return {
    ...messageCalls(calls),
    ...listCalls(calls),
    ...operatorCalls(calls, acting),
    ...administrationCalls(calls, acting),
    ...effectCalls(calls, acting),
    ...sessionCalls(calls, acting),
    ...sweepCalls(calls, acting),
    events: (given = {}) => readEvents(calls, given, closing.signal),
    close: async () => {
      closing.abort()
      calls.close()
    },
  }
}
