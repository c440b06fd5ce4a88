import type { z } from 'zod'
import { bulkReplySchema, operatorReplySchema } from '../contract/delivery-views.js'
import { fenceReplySchema, hostViewSchema, liftReplySchema } from '../contract/host-views.js'
import type { ActOptions, FenceOptions, HubCalls, OperatorAct } from '../contract/hub.js'
import { principalReply, principalsReply, settingsReply } from '../contract/wire.js'
import type { Calls } from './calls.js'
import { part } from './paths.js'

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

/** What operators do to fences, hosts and deliveries: each is made once, and never repeated by itself. */
export function operatorCalls(calls: Calls, headers: Readonly<Record<string, string>>): OperatorCalls {
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

/** Settings and principals. */
export function administrationCalls(
  calls: Calls,
  headers: Readonly<Record<string, string>>,
): AdministrationCalls {
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
