import { HoldfastError } from '../contract/errors.js'
import { naming, qualifiedId } from '../contract/hub-set.js'
import { hubSetOf } from '../set/hub-set-of.js'
import { merged } from '../set/merged.js'
import type { EventsOptions, HubEvent } from './events.js'
import type { Client } from './open-client.js'

/** Clients of several hubs as one: their calls as of every set, their sweeps, and their logs side by side. */
export function clientSetOf(clients: ReadonlyMap<string, Client>): Client {
  const names = [...clients.keys()]
  return {
    ...hubSetOf(clients),
    runSweep: async (name) => {
      const runs = await Promise.all(
        [...clients].map(([hub, client]) =>
          naming(hub, async () => ({ hub, runs: await client.runSweep(name) })),
        ),
      )
      return runs.flatMap(({ hub, runs: own }) => own.map((run) => ({ ...run, hub })))
    },
    events: (options = {}) => eventsOf(clients, positionsOf(names, options), options.signal),
  }
}

/** Where each hub's log goes on. @throws INVALID_ARGUMENT */
function positionsOf(
  names: readonly string[],
  { lastEventId = {} }: EventsOptions,
): ReadonlyMap<string, string> {
  const given = typeof lastEventId === 'string' ? { [lastEventId]: '' } : lastEventId
  const stranger = Object.keys(given).find((hub) => !names.includes(hub))
  if (stranger === undefined) return new Map(Object.entries(given))
  throw new HoldfastError('INVALID_ARGUMENT', `${JSON.stringify(stranger)} is no hub of the set`, {
    current: lastEventId,
    next: `event ids are per hub: give { "${names[0]}": "<the last id of its events>", … }`,
  })
}

async function* eventsOf(
  clients: ReadonlyMap<string, Client>,
  positions: ReadonlyMap<string, string>,
  signal: AbortSignal | undefined,
): AsyncGenerator<HubEvent, void, undefined> {
  const over = new AbortController()
  const either = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal])
  const sources = [...clients].map(([hub, client]) =>
    ofHub(hub, client.events({ lastEventId: positions.get(hub), signal: either })),
  )
  try {
    yield* merged(sources)
  } finally {
    over.abort()
  }
}

async function* ofHub(hub: string, events: AsyncIterable<HubEvent>): AsyncGenerator<HubEvent> {
  for await (const event of events) yield qualified(hub, event)
}

function qualified(hub: string, event: HubEvent): HubEvent {
  if (event.kind === 'gap') return { ...event, hub }
  const changes = event.entry.changes.map((change) => ({
    ...change,
    ids: change.ids.map((id) => qualifiedId(hub, id)),
  }))
  return { ...event, hub, entry: { ...event.entry, changes } }
}
