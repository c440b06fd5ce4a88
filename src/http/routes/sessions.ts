import { type SessionView, sessionReplySchema, sessionViewSchema } from '../../contract/session-views.js'
import { pageQuery } from '../../contract/wire.js'
import {
  sessionCloseBody,
  sessionOpenBody,
  sessionParams,
  sessionRehomeBody,
  sessionsReply,
} from '../../contract/wire-sessions.js'
import { access, requireHost, requireRole, requireScopes } from '../access.js'
import type { Caller } from '../identities.js'
import { type App, type RouteParts, replies } from './parts.js'

/** Sessions: addressable targets on hosts. A node opens and closes those of its own host and scopes. */
export function addSessionRoutes(app: App, parts: RouteParts): void {
  addReads(app, parts)
  addOpening(app, parts)
  addRehome(app, parts)
}

function addReads(app: App, { hub }: RouteParts): void {
  app.get(
    '/v1/sessions',
    {
      config: { access: access.readers },
      schema: {
        operationId: 'listSessions',
        summary: 'Sessions by when they were first opened',
        tags: ['sessions'],
        querystring: pageQuery,
        response: replies({ 200: sessionsReply }),
      },
    },
    async (request) => {
      const { entries, cursor } = await hub.sessionPage(request.query)
      return { sessions: entries, cursor }
    },
  )
  app.get(
    '/v1/sessions/:id',
    {
      config: { access: access.hosts },
      schema: {
        operationId: 'getSession',
        summary: 'A session as recorded: open, closed or missing; 404 for one never opened',
        tags: ['sessions'],
        params: sessionParams,
        response: replies({ 200: sessionViewSchema }),
      },
    },
    async (request) => {
      const view = await hub.session(request.params.id)
      requireSession(request.caller, view)
      return view
    },
  )
}

function addOpening(app: App, { hub }: RouteParts): void {
  app.put(
    '/v1/sessions/:id',
    {
      config: { access: access.nodes },
      schema: {
        operationId: 'openSession',
        summary: 'Open: addressable at its host from now on, under a new session epoch',
        tags: ['sessions'],
        params: sessionParams,
        body: sessionOpenBody,
        response: replies({ 200: sessionReplySchema }),
      },
    },
    async (request) => {
      const { caller, body } = request
      requireHost(caller, body.host)
      requireScopes(caller, [body.scope], '#/scope')
      const { asOperator = caller.role === 'operator' } = body
      if (asOperator) requireRole(caller, access.operators)
      return await hub.openSession(request.params.id, { ...body, asOperator }, caller.name)
    },
  )
  app.post(
    '/v1/sessions/:id/close',
    {
      config: { access: access.nodes },
      schema: {
        operationId: 'closeSession',
        summary: 'Close: until it opens again, or for good; a repeated close gets the first answer',
        tags: ['sessions'],
        params: sessionParams,
        body: sessionCloseBody,
        response: replies({ 200: sessionReplySchema }),
      },
    },
    async (request) => {
      const { caller, params } = request
      if (caller.role === 'node') requireSession(caller, await hub.session(params.id))
      return await hub.closeSession(params.id, request.body, caller.name)
    },
  )
}

/** A node knows the sessions of its own host and scopes. @throws FORBIDDEN, SCOPE_NOT_AUTHORISED */
function requireSession(caller: Caller, { host, scope }: SessionView): void {
  requireHost(caller, host)
  requireScopes(caller, [scope], 'path:/id')
}

function addRehome(app: App, { hub }: RouteParts): void {
  app.post(
    '/v1/sessions/:id/rehome',
    {
      config: { access: access.operators },
      schema: {
        operationId: 'rehomeSession',
        summary:
          'Another host owns it from now on, with its deliveries and child sessions; repeating completes it',
        tags: ['sessions'],
        params: sessionParams,
        body: sessionRehomeBody,
        response: replies({ 200: sessionReplySchema }),
      },
    },
    async (request) => {
      const { host, reason } = request.body
      return await hub.rehome(request.params.id, host, { reason, actor: request.caller.name })
    },
  )
}
