import { HoldfastError } from '../contract/errors.js'
import type { EventsOptions, HubEvent } from '../contract/events.js'
import type { HubCalls, LogPageOptions } from '../contract/hub.js'
import { qualifiedId } from '../contract/hub-set.js'
import type { LogFilter } from '../contract/log-filter.js'
import type { Event, LogEvent } from '../contract/wire-log.js'
import { type Member, type Members, only } from './members.js'
import { merged } from './merged.js'
import { newestOfAll } from './newest.js'

type LogCalls = Pick<HubCalls, 'logPage' | 'events'>

/** The logs of all hubs: by pages as one, the newest entry first, and as they grow side by side. */
export function logCalls(members: Members): LogCalls {
  return {
    logPage: (options = {}) => {
      const { places, filter } = placesOf(members, options)
      return newestOfAll<LogEvent>(places, options, async ({ hub, calls }, page) => {
        const { entries, cursor } = await calls.logPage({ ...filter, ...page })
        return { entries: entries.map((entry) => ({ ...eventOf(hub, entry), hub })), cursor }
      })
    },
    events: (options = {}) => {
      const { places, filter } = placesOf(members, options)
      return eventsOf(places, filter, positionsOf(members.names, options), options.signal)
    },
  }
}

/** The hubs in whose logs it can be, and the filter as they take it: an id of the set is of one hub. */
function placesOf(
  members: Members,
  { verbs, actor, host, about }: LogPageOptions | EventsOptions,
): { readonly places: Members; readonly filter: LogFilter } {
  const named = members.all.find(({ hub }) => about?.startsWith(`${hub}:`))
  if (named === undefined) return { places: members, filter: { verbs, actor, host, about } }
  const own = about?.slice(named.hub.length + 1)
  return { places: only(members, named), filter: { verbs, actor, host, about: own } }
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
  { all }: Members,
  filter: LogFilter,
  positions: ReadonlyMap<string, string>,
  signal: AbortSignal | undefined,
): AsyncGenerator<HubEvent, void, undefined> {
  const over = new AbortController()
  const either = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal])
  const sources = all.map((member) =>
    ofMember(member, { ...filter, lastEventId: positions.get(member.hub), signal: either }),
  )
  try {
    yield* merged(sources)
  } finally {
    over.abort()
  }
}

async function* ofMember({ hub, calls }: Member, options: EventsOptions): AsyncGenerator<HubEvent> {
  for await (const event of calls.events(options)) {
    yield event.kind === 'gap' ? { ...event, hub } : { ...event, hub, entry: eventOf(hub, event.entry) }
  }
}

/** Ids of what changed are those of the set; what else an entry says is as its hub wrote it. */
function eventOf<Entry extends Event>(hub: string, entry: Entry): Entry {
  const changes = entry.changes.map((change) => ({
    ...change,
    ids: change.ids.map((id) => qualifiedId(hub, id)),
  }))
  return { ...entry, changes }
}
