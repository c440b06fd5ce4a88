import type { ActOptions, BulkFilter, HubCalls, OperatorAct } from '../contract/hub.js'
import { naming, qualifiedId } from '../contract/hub-set.js'
import { type Members, onAll } from './members.js'
import { placeOf } from './pages.js'
import { withId } from './qualified.js'

type OperatorCalls = Pick<
  HubCalls,
  | 'retire'
  | 'release'
  | 'reject'
  | 'holdDelivery'
  | 'cancel'
  | 'actOnMany'
  | 'resolveAttempt'
  | 'resolveDelivery'
>

/** What operators do: by an id on its hub, to many hub after hub, to a host on every hub. */
export function operatorCalls(members: Members): OperatorCalls {
  const act =
    (verb: 'release' | 'reject' | 'holdDelivery' | 'cancel') =>
    async (given: string, options: ActOptions) => {
      const { hub, calls, id } = members.ofId(given)
      return withId(hub, await calls[verb](id, options))
    }
  return {
    retire: async (host, options) => {
      await onAll(members, {
        what: `host ${host} is retired`,
        absent: 'HOST_NOT_FOUND',
        act: ({ calls }) => calls.retire(host, options),
      })
    },
    release: act('release'),
    reject: act('reject'),
    holdDelivery: act('holdDelivery'),
    cancel: act('cancel'),
    actOnMany: (verb, filter, options) => actOnMany(members, verb, filter, options),
    resolveAttempt: async (given, resolution, actor) => {
      const { hub, calls, id } = members.ofId(given)
      return withId(hub, await calls.resolveAttempt(id, resolution, actor))
    },
    resolveDelivery: async (given, resolution, actor) => {
      const { hub, calls, id } = members.ofId(given)
      return withId(hub, await calls.resolveDelivery(id, resolution, actor))
    },
  }
}

/** One page of one hub; the cursor goes on there, then with the next hub. */
async function actOnMany(
  members: Members,
  verb: OperatorAct,
  filter: BulkFilter,
  options: Parameters<HubCalls['actOnMany']>[2],
): ReturnType<HubCalls['actOnMany']> {
  const only = filter.session === undefined ? undefined : members.ofId(filter.session)
  const place = placeOf(members, options.cursor)
  const member = only ?? members.named(members.names[place.at] ?? '')
  const { calls, hub } = member
  const own = only === undefined ? filter : { ...filter, session: only.id }
  const done = await naming(hub, () => calls.actOnMany(verb, own, { ...options, cursor: place.cursor }))
  const { cursor: inner, ...rest } = done
  const next = members.all[place.at + 1]
  const cursor =
    inner !== undefined
      ? `${hub}|${inner}`
      : only === undefined && next !== undefined
        ? `${next.hub}|`
        : undefined
  return {
    ...rest,
    refused: done.refused.map((each) => ({ ...each, id: qualifiedId(hub, each.id) })),
    ...(cursor === undefined ? {} : { cursor }),
  }
}
