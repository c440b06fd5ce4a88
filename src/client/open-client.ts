import type { z } from 'zod'
import { HoldfastError, isHoldfastError } from '../contract/errors.js'
import type {
  Accepted,
  ActOptions,
  FenceOptions,
  HubCalls,
  OperatorAct,
  PageOptions,
} from '../contract/hub.js'
import { checkedHubs } from '../contract/hub-set.js'
import { type OutgoingMessage, prepareMessage } from '../contract/message.js'
import { overviewSchema } from '../contract/overview.js'
import { allOf } from '../contract/pages.js'
import {
  bulkReplySchema,
  deliveryViewSchema,
  fenceReplySchema,
  hostViewSchema,
  liftReplySchema,
  messageViewSchema,
  operatorReplySchema,
  whyReplySchema,
} from '../contract/views.js'
import {
  acceptedReply,
  countsReply,
  deliveriesReply,
  fencesReply,
  heldReply,
  hostsReply,
  logReply,
  longestWaitMs,
  messagesReply,
  pendingReply,
  principalReply,
  principalsReply,
  settingsReply,
  unknownReply,
} from '../contract/wire.js'
import { type Answer, type Calls, type HubAddress, openCalls } from './calls.js'
import { clientSetOf } from './client-set.js'
import { effectCalls } from './effect-calls.js'
import { filterMembers, readEvents } from './events.js'
import { escaped, part, query } from './paths.js'
import { sessionCalls } from './session-calls.js'
import { type SweepCalls, sweepCalls } from './sweep-calls.js'

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

/**
 * Opens a client of a hub over HTTP (contract section 10). Nothing is connected before the first call. Reads
 * and accepts are repeated by themselves within the deadline; an operator's act is made once.
 * @throws INVALID_ARGUMENT for a URL, token or TLS material that cannot be used
 */
export function openClient({ hubs, ...options }: ClientOptions): Client {
  const names = hubs === undefined ? [] : checkedHubs(hubs)
  if (names.length < 2) return openOne(options)
  const below = (hub: string) => `${options.url.replace(/\/+$/, '')}/hubs/${hub}`
  return clientSetOf(new Map(names.map((hub) => [hub, openOne({ ...options, url: below(hub) })])))
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

type MessageCalls = Pick<HubCalls, 'accept' | 'resend' | 'message' | 'messagePage' | 'payload' | 'waitFor'>

function messageCalls(calls: Calls): MessageCalls {
  const read = async (id: string, waitMs = 0, signal?: AbortSignal) => {
    const path = `/v1/messages/${part(id)}${query({ waitMs: waitMs === 0 ? undefined : Math.ceil(waitMs) })}`
    const given = signal === undefined ? {} : { signal }
    const deadline = waitMs === 0 ? {} : { deadlineMs: waitMs + 10_000, waits: true }
    return (await calls.repeat({ method: 'GET', path, reply: messageViewSchema, ...deadline, ...given }))
      .value
  }
  return {
    accept: async (message) => {
      const headers = keyHeader(message.key)
      const body = messageBodyOf(message)
      return acceptedOf(
        await calls.repeat({ method: 'POST', path: '/v1/messages', headers, body, reply: acceptedReply }),
      )
    },
    resend: async (id, { key, to }) => {
      const path = `/v1/messages/${part(id)}/resend`
      const headers = keyHeader(key)
      const body = to === undefined ? {} : { to }
      return acceptedOf(await calls.repeat({ method: 'POST', path, headers, body, reply: acceptedReply }))
    },
    message: (id) => read(id),
    messagePage: async ({ id, key, conversation, sender, cursor, limit } = {}) => {
      const path = `/v1/messages${query({ id, key, conversation, sender, cursor, limit })}`
      const { value } = await calls.repeat({ method: 'GET', path, reply: messagesReply })
      return { entries: value.messages, cursor: value.cursor }
    },
    payload: async (id) => {
      const { body, headers } = await calls.bytes(`/v1/messages/${part(id)}/payload`)
      const contentType = headers['holdfast-content-type']
      return {
        bytes: body,
        ...(typeof contentType === 'string' ? { contentType: decodeURIComponent(contentType) } : {}),
        sha256: String(headers['holdfast-sha256'] ?? ''),
      }
    },
    waitFor: async (id, timeoutMs, signal) => {
      const deadlineAt = performance.now() + timeoutMs
      while (!signal?.aborted) {
        const leftMs = Math.max(0, deadlineAt - performance.now())
        try {
          const view = await read(id, Math.min(leftMs, longestWaitMs / 2), signal)
          if (view.settledAt !== undefined || performance.now() >= deadlineAt) return view
        } catch (error) {
          if (!signal?.aborted) throw error
        }
      }
      return await read(id)
    },
  }
}

/** HTTP takes blanks off the ends of a header: such a key would become another one. @throws INVALID_ARGUMENT */
function keyHeader(key: string): Readonly<Record<string, string>> {
  if (key.trim() === key) return { 'idempotency-key': key }
  throw new HoldfastError('INVALID_ARGUMENT', 'over HTTP a key has no blank at its ends', {
    next: 'choose another key',
  })
}

/** Bytes travel as base64: they arrive as they are. @throws INVALID_ARGUMENT */
function messageBodyOf(message: OutgoingMessage): object {
  const { sender, resendOf } = message
  if (resendOf !== undefined) {
    throw new HoldfastError('INVALID_ARGUMENT', 'over HTTP a message is sent again by resend()')
  }
  const checked = prepareMessage({ ...message, sender: sender ?? principalOfTheCall })
  const { payload, contentType, parent, deliverBy, executeBy } = checked
  return {
    conversation: message.conversation,
    ...(sender === undefined ? {} : { sender }),
    to: message.to,
    payloadBase64: payload.toString('base64'),
    ...(contentType === '' ? {} : { contentType }),
    ...(parent === '' ? {} : { parent }),
    ...(deliverBy === '' ? {} : { deliverBy: Number(deliverBy) }),
    ...(executeBy === '' ? {} : { executeBy: Number(executeBy) }),
  }
}

/** Stands for the sender in checks before the call: the hub knows who it is. */
const principalOfTheCall = 'principal'

function acceptedOf({ value, headers }: Answer<z.output<typeof acceptedReply>>): Accepted {
  return { ...value, replayed: headers['idempotency-replayed'] === 'true' }
}

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

function listCalls(calls: Calls): ListCalls {
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
  const hostPage: HubCalls['hostPage'] = async (page) => {
    const { hosts: entries, cursor } = await get(`/v1/hosts${paged(page)}`, hostsReply)
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

type OperatorCalls = Pick<
  HubCalls,
  | 'pause'
  | 'hold'
  | 'block'
  | 'lift'
  | 'drain'
  | 'retire'
  | 'release'
  | 'reject'
  | 'holdDelivery'
  | 'cancel'
  | 'actOnMany'
>

function operatorCalls(calls: Calls, headers: Readonly<Record<string, string>>): OperatorCalls {
  const post = async <Schema extends z.ZodType>(path: string, body: object, reply: Schema) =>
    (await calls.call({ method: 'POST', path, body, headers, reply })).value
  const fencePath = (kind: string, scope: string) => `/v1/fences/${part(kind)}/${part(scope)}`
  const setFence =
    (kind: string) =>
    async (scope: string, { reason, until }: FenceOptions) => {
      const body = { reason, ...(until === undefined ? {} : { until: Number(until) }) }
      return (
        await calls.call({
          method: 'PUT',
          path: fencePath(kind, scope),
          body,
          headers,
          reply: fenceReplySchema,
        })
      ).value
    }
  const act =
    (verb: OperatorAct) =>
    async (id: string, { reason }: ActOptions) =>
      post(`/v1/deliveries/${part(id)}/${verb}`, { reason }, operatorReplySchema)
  return {
    pause: setFence('pause'),
    hold: setFence('hold'),
    block: setFence('block'),
    lift: async (kind, scope) =>
      (await calls.call({ method: 'DELETE', path: fencePath(kind, scope), headers, reply: liftReplySchema }))
        .value,
    drain: async (host) => post(`/v1/hosts/${part(host)}/drain`, {}, fenceReplySchema),
    retire: async (host, { reason }) => {
      await post(`/v1/hosts/${part(host)}/retire`, { reason }, hostViewSchema)
    },
    release: act('release'),
    reject: act('reject'),
    holdDelivery: act('hold'),
    cancel: act('cancel'),
    actOnMany: (verb, filter, { reason, dryRun, cursor, limit }) =>
      post(`/v1/deliveries/${verb}`, { filter, reason, dryRun, cursor, limit }, bulkReplySchema),
  }
}

type AdministrationCalls = Pick<
  HubCalls,
  'configuration' | 'configure' | 'principals' | 'principal' | 'addPrincipal' | 'revokePrincipal'
>

function administrationCalls(calls: Calls, headers: Readonly<Record<string, string>>): AdministrationCalls {
  const principals = async () =>
    (await calls.repeat({ method: 'GET', path: '/v1/principals', headers, reply: principalsReply })).value
      .principals
  return {
    configuration: async () =>
      (await calls.repeat({ method: 'GET', path: '/v1/config', headers, reply: settingsReply })).value
        .settings,
    configure: async (changes) => {
      const body = Object.fromEntries(Object.entries(changes).map(([name, value]) => [name, numberOf(value)]))
      await calls.call({ method: 'PUT', path: '/v1/config', headers, body, reply: settingsReply })
    },
    principals,
    principal: async (name) => {
      const path = `/v1/principals/${part(name)}`
      return (await calls.repeat({ method: 'GET', path, headers, reply: principalReply })).value.principal
    },
    addPrincipal: async (principal) =>
      (
        await calls.call({
          method: 'POST',
          path: '/v1/principals',
          headers,
          body: principal,
          reply: principalReply,
        })
      ).value,
    revokePrincipal: async (name, { reason }) => {
      const path = `/v1/principals/${part(name)}/revoke`
      await calls.call({ method: 'POST', path, headers, body: { reason }, reply: principalReply })
    },
  }
}

/** Text that is no number goes as it is: the hub says what is wrong with it. */
function numberOf(value: number | string): number | string {
  const isWhole = typeof value === 'string' && /^\d+$/.test(value) && Number.isSafeInteger(Number(value))
  return isWhole ? Number(value) : value
}
