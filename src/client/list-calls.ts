import type { z } from 'zod'
import { deliveryViewSchema, whyReplySchema } from '../contract/delivery-views.js'
import { isHoldfastError } from '../contract/errors.js'
import { hostViewSchema } from '../contract/host-views.js'
import type { HubCalls, PageOptions } from '../contract/hub.js'
import { overviewSchema } from '../contract/overview.js'
import { allOf } from '../contract/pages.js'
import {
  countsReply,
  deliveriesReply,
  fencesReply,
  heldReply,
  hostsReply,
  pendingReply,
  unknownReply,
} from '../contract/wire.js'
import { logReply } from '../contract/wire-log.js'
import type { Calls } from './calls.js'
import { filterMembers } from './events.js'
import { part, query } from './paths.js'

type ListCalls = Pick<
  HubCalls,
  | 'delivery'
  | 'deliveries'
  | 'why'
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
  | 'overview'
  | 'logPage'
  | 'fences'
>

/** What stands in the record: deliveries, queues, hosts, counts, the log, fences. */
export function listCalls(calls: Calls): ListCalls {
  const get = async <Schema extends z.ZodType>(path: string, reply: Schema): Promise<z.output<Schema>> =>
    (await calls.repeat({ method: 'GET', path, reply })).value
  const paged = (page: PageOptions = {}) => query({ cursor: page.cursor, limit: page.limit })

  const heldPage: HubCalls['heldPage'] = async (page) => {
    const { held: entries, cursor } = await get(`/v1/held${paged(page)}`, heldReply)
    return { entries, cursor }
  }
  const unknownPage: HubCalls['unknownPage'] = async (page) => {
    const { unknown: entries, cursor } = await get(`/v1/unknown${paged(page)}`, unknownReply)
    return { entries, cursor }
  }
  const hostPage: HubCalls['hostPage'] = async ({ only, cursor: from, limit } = {}) => {
    const { hosts: entries, cursor } = await get(
      `/v1/hosts${query({ only, cursor: from, limit })}`,
      hostsReply,
    )
    return { entries, cursor }
  }
  const pendingPage: HubCalls['pendingPage'] = async (host, page) => {
    const path = `/v1/hosts/${part(host)}/pending${paged(page)}`
    const { pending: entries, cursor } = await get(path, pendingReply)
    return { entries, cursor }
  }
  const hosts = () => allOf(hostPage)
  return {
    delivery: async (id) => get(`/v1/deliveries/${part(id)}`, deliveryViewSchema),
    deliveries: async ({ host, state, conversation, session, message, reason, cursor, limit } = {}) =>
      get(
        `/v1/deliveries${query({ host, state, conversation, session, message, reason, cursor, limit })}`,
        deliveriesReply,
      ),
    why: async (id) => get(`/v1/deliveries/${part(id)}/why`, whyReplySchema),
    pending: async (host) => {
      const names = host === undefined ? (await hosts()).map((each) => each.host) : [host]
      const lists = []
      for (const name of names) lists.push(await allOf((page) => pendingPage(name, page)))
      return lists.flat()
    },
    pendingPage,
    held: () => allOf(heldPage),
    heldPage,
    unknown: () => allOf(unknownPage),
    unknownPage,
    hosts,
    hostPage,
    host: async (name) => {
      try {
        return await get(`/v1/hosts/${part(name)}`, hostViewSchema)
      } catch (error) {
        if (isHoldfastError(error, 'HOST_NOT_FOUND')) return undefined
        throw error
      }
    },
    counts: async () => (await get('/v1/counts', countsReply)).counts,
    overview: async () => get('/v1/overview', overviewSchema),
    logPage: async ({ cursor, limit, ...filter } = {}) =>
      get(`/v1/log${query({ ...filterMembers(filter), cursor, limit })}`, logReply),
    fences: async () => (await get('/v1/fences', fencesReply)).fences,
  }
}
