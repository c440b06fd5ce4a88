import {
  actBody,
  principalBody,
  principalParams,
  principalReply,
  principalsReply,
  settingsBody,
  settingsReply,
} from '../../contract/wire.js'
import { certificateDigest } from '../../hub/principals.js'
import { access } from '../access.js'
import { problem } from '../problem.js'
import { type App, type RouteParts, replies } from './parts.js'

/** Settings and principals. */
export function addAdministrationRoutes(app: App, parts: RouteParts): void {
  addSettings(app, parts)
  addPrincipals(app, parts)
}

function addSettings(app: App, { hub }: RouteParts): void {
  app.get(
    '/v1/config',
    {
      config: { access: access.readers },
      schema: {
        operationId: 'getConfiguration',
        summary: 'Every tunable, as it works now',
        tags: ['administration'],
        response: replies({ 200: settingsReply }),
      },
    },
    async () => ({ settings: await hub.configuration() }),
  )
  app.put(
    '/v1/config',
    {
      config: { access: access.operators },
      schema: {
        operationId: 'configure',
        summary: 'Change tunables for every process at once: all that are named, or none',
        tags: ['administration'],
        body: settingsBody,
        response: replies({ 200: settingsReply }),
      },
    },
    async (request) => {
      await hub.configure(request.body, request.caller.name)
      return { settings: await hub.configuration() }
    },
  )
}

function addPrincipals(app: App, { hub, identities }: RouteParts): void {
  app.get(
    '/v1/principals',
    {
      config: { access: access.operators },
      schema: {
        operationId: 'listPrincipals',
        summary: 'Who may speak, and who might once',
        tags: ['administration'],
        response: replies({ 200: principalsReply }),
      },
    },
    async () => ({ principals: await hub.principals() }),
  )
  app.get(
    '/v1/principals/:name',
    {
      config: { access: access.operators },
      schema: {
        operationId: 'getPrincipal',
        summary: 'One principal',
        tags: ['administration'],
        params: principalParams,
        response: replies({ 200: principalReply }),
      },
    },
    async (request) => ({ principal: await hub.principal(request.params.name) }),
  )
  app.post(
    '/v1/principals',
    {
      config: { access: access.operators },
      schema: {
        operationId: 'addPrincipal',
        summary: 'Add a principal; its token is in this answer alone',
        tags: ['administration'],
        body: principalBody,
        response: replies({ 201: principalReply.describe('added') }),
      },
    },
    async (request, reply) => {
      requireCertificate(request.body.certificate)
      const added = await hub.addPrincipal(request.body, request.caller.name)
      await identities.refresh()
      return reply.code(201).header('cache-control', 'no-store').send(added)
    },
  )
  app.post(
    '/v1/principals/:name/revoke',
    {
      config: { access: access.operators },
      schema: {
        operationId: 'revokePrincipal',
        summary: 'End a principal for good, at once, live connections included',
        tags: ['administration'],
        params: principalParams,
        body: actBody,
        response: replies({ 200: principalReply }),
      },
    },
    async (request) => {
      const { name } = request.params
      await hub.revokePrincipal(name, { reason: request.body.reason, actor: request.caller.name })
      await identities.refresh()
      return { principal: await hub.principal(name) }
    },
  )
}

/** @throws INVALID_ARGUMENT */
function requireCertificate(pem: string | undefined): void {
  try {
    if (pem !== undefined) certificateDigest(pem)
  } catch {
    throw problem('INVALID_ARGUMENT', '#/certificate is no PEM certificate', { pointer: '#/certificate' })
  }
}
