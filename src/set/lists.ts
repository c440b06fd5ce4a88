import type { HeldEntry, UnknownEntry } from '../contract/delivery-views.js'
import { HoldfastError } from '../contract/errors.js'
import type { HostView, PendingEntry } from '../contract/host-views.js'
import type { DeliveryFilter, HostPageOptions, HubCalls, Page, PageOptions } from '../contract/hub.js'
import { allOf } from '../contract/pages.js'
import { askAll, type Member, type Members, only } from './members.js'
import { pageOfAll } from './pages.js'
import { deliveryOf, heldOf, pendingOf, unknownOf } from './qualified.js'

type ListCalls = Pick<
  HubCalls,
  | 'deliveries'
  | 'pending'
  | 'pendingPage'
  | 'held'
  | 'heldPage'
  | 'unknown'
  | 'unknownPage'
  | 'hosts'
  | 'hostPage'
  | 'host'
  | 'counts'
>

/** Lists of every hub as one: pages hub after hub, whole queues by age. */
export function listCalls(members: Members): ListCalls {
  const paged =
    <Entry>(read: (member: Member, page: PageOptions) => Promise<Page<Entry>>) =>
    (page?: PageOptions) =>
      pageOfAll(members, page, read)

  const heldPage = paged<HeldEntry>(async ({ hub, calls }, page) =>
    mapped(await calls.heldPage(page), (entry) => heldOf(hub, entry)),
  )
  const unknownPage = paged<UnknownEntry>(async ({ hub, calls }, page) =>
    mapped(await calls.unknownPage(page), (entry) => unknownOf(hub, entry)),
  )
  const hostPage = (options: HostPageOptions = {}) =>
    pageOfAll<HostView>(members, options, async ({ hub, calls }, page) =>
      mapped(await calls.hostPage({ ...page, only: options.only }), (view) => ({ ...view, hub })),
    )
  return {
    deliveries: async (filter: DeliveryFilter = {}) => {
      const { places, own } = placesOf(members, filter)
      const { entries, ...rest } = await pageOfAll(places, filter, async ({ hub, calls }, page) => {
        const found = await calls.deliveries({ ...own, ...page })
        return { entries: found.deliveries.map((view) => deliveryOf(hub, view)), cursor: found.cursor }
      })
      return { deliveries: entries, ...rest }
    },
    pending: async (host) => {
      const all = await askAll(members, ({ calls }) => calls.pending(host))
      return all.flatMap(({ hub, value }) => value.map((entry) => pendingOf(hub, entry)))
    },
    pendingPage: (host, page) =>
      pageOfAll<PendingEntry>(members, page, async ({ hub, calls }, own) =>
        mapped(await calls.pendingPage(host, own), (entry) => pendingOf(hub, entry)),
      ),
    held: async () => oldestFirst(await allOf(heldPage)),
    heldPage,
    unknown: async () => oldestFirst(await allOf(unknownPage)),
    unknownPage,
    hosts: () => allOf(hostPage),
    hostPage,
    host: async (name) => {
      const all = await askAll(members, ({ calls }) => calls.host(name))
      return hostOf(all.flatMap(({ hub, value }) => (value === undefined ? [] : [{ ...value, hub }])))
    },
    counts: async () => {
      const all = await askAll(members, ({ calls }) => calls.counts())
      return all.reduce((total, { value }) => sums(total, value), {})
    },
  }
}

/** The hubs that have such deliveries, and the filter as they take it: a message or a session is of one. */
function placesOf(
  members: Members,
  filter: DeliveryFilter,
): { readonly places: Members; readonly own: DeliveryFilter } {
  const { message, session } = filter
  const named = message ?? session
  if (named === undefined) return { places: members, own: filter }
  const member = members.ofId(named)
  const ownId = (given: string | undefined) => {
    if (given === undefined) return undefined
    const { hub, id } = members.ofId(given)
    if (hub === member.hub) return id
    throw new HoldfastError('INVALID_ARGUMENT', `${given} is on hub ${hub}, and ${named} on ${member.hub}`, {
      current: given,
      next: 'a message and its sessions are on one hub',
    })
  }
  return {
    places: only(members, member),
    own: { ...filter, message: ownId(message), session: ownId(session) },
  }
}

function mapped<Entry>({ entries, cursor }: Page<Entry>, change: (entry: Entry) => Entry): Page<Entry> {
  return { entries: entries.map(change), cursor }
}

function oldestFirst<Entry extends { readonly sinceMs: number }>(entries: Entry[]): Entry[] {
  return entries.sort((one, other) => one.sinceMs - other.sinceMs)
}

/** A host as all hubs together see it: retired once it is on every one that knows it. */
function hostOf(views: readonly (HostView & { readonly hub: string })[]): HostView | undefined {
  const [first] = views
  if (first === undefined) return undefined
  const retired = views.flatMap(({ retiredAt }) => (retiredAt === undefined ? [] : [retiredAt]))
  return {
    host: first.host,
    joined: views.some(({ joined }) => joined),
    ...(retired.length === views.length ? { retiredAt: Math.max(...retired) } : {}),
    entries: views.reduce((total, { entries }) => total + entries, 0),
    awaiting: views.reduce((total, { awaiting }) => total + awaiting, 0),
    nodes: views.flatMap(({ hub, nodes }) => nodes.map((node) => ({ ...node, hub }))),
  }
}

/** Two sets of counts as one. */
export function sums(
  one: Readonly<Record<string, number>>,
  other: Readonly<Record<string, number>>,
): Record<string, number> {
  const total = { ...one }
  for (const [name, count] of Object.entries(other)) total[name] = (total[name] ?? 0) + count
  return total
}
