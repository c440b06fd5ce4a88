import { attemptResolvedSchema, operatorReplySchema } from '../contract/delivery-views.js'
import type { HubCalls } from '../contract/hub.js'
import { sessionReplySchema, sessionViewSchema } from '../contract/session-views.js'
import { sessionScope } from '../contract/sessions.js'
import { sessionsReply } from '../contract/wire-sessions.js'
import type { Calls } from './calls.js'
import { part, query } from './paths.js'

type SessionPart = Pick<
  HubCalls,
  'openSession' | 'closeSession' | 'rehome' | 'session' | 'sessionPage' | 'resolveAttempt' | 'resolveDelivery'
>

/**
 * Sessions and resolutions over HTTP. Closing is repeated by itself: it names the epoch, and a repeat gets the first
 * answer. Opening is made once, because each makes an epoch; so is what an operator decides.
 */
export function sessionCalls(calls: Calls, headers: Readonly<Record<string, string>>): SessionPart {
  const sessionPath = (id: string, verb = '') => `/v1/sessions/${part(id)}${verb}`
  return {
    openSession: async (id, opening) => {
      // Said either way, so that it does not hang on whose token this is.
      const { asOperator = false } = opening
      const body = { ...opening, scope: sessionScope(opening.scope), asOperator }
      return (
        await calls.call({ method: 'PUT', path: sessionPath(id), headers, body, reply: sessionReplySchema })
      ).value
    },
    closeSession: async (id, body) => {
      const path = sessionPath(id, '/close')
      return (await calls.repeat({ method: 'POST', path, headers, body, reply: sessionReplySchema })).value
    },
    rehome: async (id, host, { reason }) => {
      const path = sessionPath(id, '/rehome')
      const body = { host, reason }
      return (await calls.call({ method: 'POST', path, headers, body, reply: sessionReplySchema })).value
    },
    session: async (id) =>
      (await calls.repeat({ method: 'GET', path: sessionPath(id), reply: sessionViewSchema })).value,
    sessionPage: async ({ cursor, limit } = {}) => {
      const path = `/v1/sessions${query({ cursor, limit })}`
      const { value } = await calls.repeat({ method: 'GET', path, reply: sessionsReply })
      return { entries: value.sessions, cursor: value.cursor }
    },
    resolveAttempt: async (id, { as, evidence, force, result }) => {
      const head = JSON.stringify({ as, evidence, force })
      const body = result === undefined ? head : `${head.slice(0, -1)},"result":${result}}`
      const path = `/v1/attempts/${part(id)}/resolve`
      return (await calls.call({ method: 'POST', path, headers, body, reply: attemptResolvedSchema })).value
    },
    resolveDelivery: async (id, body) => {
      const path = `/v1/deliveries/${part(id)}/resolve`
      return (await calls.call({ method: 'POST', path, headers, body, reply: operatorReplySchema })).value
    },
  }
}
