import { setTimeout as after } from 'node:timers/promises'
import { openCalls } from '../client/calls.js'
import { openClient } from '../client/open-client.js'
import type { HubCalls } from '../contract/hub.js'
import type { RedisAddress } from '../contract/redis-address.js'
import { hubsReply } from '../contract/wire.js'
import { readConfiguration } from '../hub/configuration.js'
import { listDeliveries } from '../hub/delivery-pages.js'
import { hostNames } from '../hub/delivery-places.js'
import { listEffects } from '../hub/effects.js'
import { listFences, listHeld, listHosts, listUnknown } from '../hub/lists.js'
import { readLogPage } from '../hub/log.js'
import { readPrincipals } from '../hub/principals.js'
import { listSessions } from '../hub/sessions.js'
import { openStore, type Store } from '../record/connections.js'
import { runningServer } from '../record/embedded.js'
import { keysOf } from '../record/keys.js'
import { readerOf, stringsOf } from '../record/reader.js'
import { hubSetOf } from '../set/hub-set-of.js'
import type { Settings } from './config.js'
import { addressOf, hubsOf } from './context.js'

/** What names are read from: calls that change nothing. */
export interface NamedHub
  extends Pick<
    HubCalls,
    | 'deliveries'
    | 'effectPage'
    | 'fences'
    | 'heldPage'
    | 'hostPage'
    | 'logPage'
    | 'principals'
    | 'sessionPage'
  > {
  unknownPage: HubCalls['unknownPage']
  configuration: HubCalls['configuration']
  hostNames(): Promise<readonly string[]>
  /** The hubs that are kept, or served, at this place. */
  hubNames(): Promise<readonly string[]>
}

/** What a shell waits for before it shows what it has. */
const patienceMs = 1000
/** Also over HTTP, where each host of a page costs a look at its nodes. */
const hostsAtMost = 200

/**
 * Reads names from the hub that the settings name; undefined where it does not answer in time, or refuses. Nothing is
 * started, loaded or repaired for it, unlike by a command that opens the hub.
 */
export async function readNames<Names>(
  settings: Settings,
  read: (hub: NamedHub) => Promise<Names>,
): Promise<Names | undefined> {
  const over = new AbortController()
  const reading = through(settings, read).catch(() => undefined)
  const silence = after(patienceMs, undefined, { signal: over.signal, ref: false }).catch(() => undefined)
  return await Promise.race([reading, silence]).finally(() => over.abort())
}

async function through<Names>(
  settings: Settings,
  read: (hub: NamedHub) => Promise<Names>,
): Promise<Names | undefined> {
  if (settings.http !== undefined) {
    const address = { ...addressOf(settings.http), deadlineMs: patienceMs }
    const client = openClient({ ...address, hubs: settings.hubs })
    const calls = openCalls(address)
    const hub = {
      ...client,
      hostNames: async () => (await client.hostPage({ limit: hostsAtMost })).entries.map(({ host }) => host),
      hubNames: async () => (await calls.call({ method: 'GET', path: '/hubs', reply: hubsReply })).value.hubs,
    }
    return await read(hub).finally(() => Promise.all([client.close(), calls.close()]))
  }
  const redis = settings.redis ?? (await runningServer(settings.data))
  if (redis === undefined) return undefined
  const hubs = hubsOf(settings)
  const stores = await Promise.all(hubs.map((hub) => openNamed(redis, hub)))
  const parts = stores.map((store, at) => readingHub(store, hubs[at] ?? ''))
  const [only] = parts
  const hub = parts.length === 1 && only !== undefined ? only : setOf(hubs, parts)
  return await read(hub).finally(() => Promise.all(stores.map((store) => store.close())))
}

function openNamed(redis: RedisAddress, hub: string): Promise<Store> {
  const deadlines = { deadlineMs: patienceMs, connectDeadlineMs: patienceMs }
  return openStore({ url: redis, tag: keysOf(hub).tag, name: 'holdfast-names', ...deadlines })
}

function readingHub(store: Store, hub: string): NamedHub {
  const keys = keysOf(hub)
  const reader = readerOf(store, keys)
  return {
    deliveries: (filter = {}) => listDeliveries(reader, keys, filter),
    effectPage: (page) => listEffects(reader, keys, page),
    fences: () => listFences(reader, keys),
    heldPage: (page) => listHeld(reader, keys, page),
    hostPage: (page) => listHosts(reader, keys, page),
    logPage: (page) => readLogPage(reader, keys, page),
    principals: async () => (await readPrincipals(reader, keys)).map(({ view }) => view),
    sessionPage: (page) => listSessions(reader, keys, page),
    unknownPage: (page) => listUnknown(reader, keys, page),
    configuration: () => readConfiguration(reader, keys),
    hostNames: () => hostNames(reader, keys),
    hubNames: () => hubsOn(store),
  }
}

/** Lists of several hubs as a set has them. */
function setOf(hubs: readonly string[], parts: readonly NamedHub[]): NamedHub {
  // A set is made of whole hubs; of these only the calls that are there are made.
  const named = new Map(parts.map((part, at) => [hubs[at] ?? '', part as Partial<HubCalls> as HubCalls]))
  return {
    ...hubSetOf(named),
    hostNames: async () => [
      ...new Set((await Promise.all(parts.map((part) => part.hostNames()))).flat().sort()),
    ],
    hubNames: () => parts[0]?.hubNames() ?? Promise.resolve([]),
  }
}

const roundsAtMost = 50

/** The hubs whose records are on a server, as far as a bounded walk over its keys meets them. */
async function hubsOn(store: Store): Promise<string[]> {
  const found: string[] = []
  let cursor = '0'
  for (let round = 0; round < roundsAtMost; round += 1) {
    const reply = await store.call(['SCAN', cursor, 'MATCH', '{*}:identity', 'COUNT', 1000])
    const [next, names] = Array.isArray(reply) ? (reply as [unknown, unknown]) : ['0', []]
    for (const name of stringsOf(names)) found.push(name.slice(1, -'}:identity'.length))
    cursor = String(next)
    if (cursor === '0') break
  }
  return found.sort()
}
