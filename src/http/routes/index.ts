import { z } from 'zod'
import { access } from '../access.js'
import type { Limits } from '../limits.js'
import { problem } from '../problem.js'
import { addAdministrationRoutes } from './administration.js'
import { addClaimRoute } from './claim.js'
import { addDeliveryRoutes } from './deliveries.js'
import { addEffectRoutes } from './effects.js'
import { addEventRoute } from './events.js'
import { addFenceRoutes } from './fences.js'
import { addHealthRoutes, type HealthParts } from './health.js'
import { addHostRoutes } from './hosts.js'
import { addIdentityRoutes } from './identity.js'
import { addMessageRoutes } from './messages.js'
import { addNodeRoutes } from './nodes.js'
import { addOverviewRoutes } from './overview.js'
import type { App } from './parts.js'
import { addReportRoute } from './reports.js'
import { addResolutionRoutes } from './resolutions.js'
import { addSessionRoutes } from './sessions.js'
import { addSweepRoutes } from './sweeps.js'

export interface AllParts extends HealthParts {
  readonly limits: Limits
}

/** Every route of the hub. */
export function addRoutes(app: App, parts: AllParts): void {
  const refuseOthers = watchMethods(app)
  addMessageRoutes(app, parts)
  addDeliveryRoutes(app, parts)
  addFenceRoutes(app, parts)
  addHostRoutes(app, parts)
  addAdministrationRoutes(app, parts)
  addNodeRoutes(app, parts)
  addClaimRoute(app, parts)
  addReportRoute(app, parts)
  addEffectRoutes(app, parts)
  addSessionRoutes(app, parts)
  addResolutionRoutes(app, parts)
  addSweepRoutes(app, parts)
  addOverviewRoutes(app, parts)
  addEventRoute(app, parts)
  addIdentityRoutes(app, parts)
  addHealthRoutes(app, parts)
  app.get(
    '/openapi.json',
    {
      config: { access: access.public },
      schema: {
        operationId: 'getOpenApi',
        summary: 'This interface as an OpenAPI 3.1 document',
        tags: ['health'],
        response: { 200: z.looseObject({}).describe('the document') },
      },
    },
    async () => ({ ...app.swagger() }),
  )
  refuseOthers()
  app.setNotFoundHandler(async ({ method, url }) => {
    throw problem('ROUTE_NOT_FOUND', `no route ${method} ${url.split('?', 1)[0]?.slice(0, 200)}`)
  })
}

/** Call what it answers once all routes are there: each of them refuses every other method, naming its own. */
export function watchMethods(app: App): () => void {
  const methods = new Map<string, Set<string>>()
  app.addHook('onRoute', ({ url, method }) => {
    const known = methods.get(url) ?? new Set()
    for (const each of [method].flat()) known.add(each)
    methods.set(url, known)
  })
  return () => refuseOtherMethods(app, new Map(methods))
}

const everyMethod = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE'] as const

/** A route that is there, but not under this method, says which methods it knows. */
function refuseOtherMethods(app: App, methods: ReadonlyMap<string, ReadonlySet<string>>): void {
  for (const [url, known] of methods) {
    const others = everyMethod.filter((method) => !known.has(method))
    const allow = [...known].sort().join(', ')
    if (others.length === 0) continue
    app.route({
      method: [...others],
      url,
      config: { access: 'public' },
      schema: { hide: true },
      handler: async (_, reply) => {
        reply.header('allow', allow)
        throw problem('METHOD_NOT_ALLOWED', `this route knows ${allow}`)
      },
    })
  }
}
