import { attemptResolvedSchema, operatorReplySchema } from '../../contract/delivery-views.js'
import { deliveryParams } from '../../contract/wire.js'
import { attemptParams, resolveBody } from '../../contract/wire-effects.js'
import { deliveryResolveBody } from '../../contract/wire-sessions.js'
import { access } from '../access.js'
import { type App, type RouteParts, replies } from './parts.js'

/** An operator's word on what nobody else can know. */
export function addResolutionRoutes(app: App, { hub }: RouteParts): void {
  app.post(
    '/v1/attempts/:id/resolve',
    {
      config: { access: access.operators },
      schema: {
        operationId: 'resolveAttempt',
        summary: "An operator's word, with evidence, on an attempt whose outcome is unknown; irreversible",
        tags: ['deliveries'],
        params: attemptParams,
        body: resolveBody,
        response: replies({ 200: attemptResolvedSchema }),
      },
    },
    async (request) => {
      const { as, evidence, force } = request.body
      const result = request.source?.textAt(['result'])?.toString('utf8')
      return await hub.resolveAttempt(request.params.id, { as, evidence, force, result }, request.caller.name)
    },
  )
  app.post(
    '/v1/deliveries/:id/resolve',
    {
      config: { access: access.operators },
      schema: {
        operationId: 'resolveDelivery',
        summary: "An operator's word, with evidence, on a delivery whose copy is in doubt; irreversible",
        tags: ['deliveries'],
        params: deliveryParams,
        body: deliveryResolveBody,
        response: replies({ 200: operatorReplySchema }),
      },
    },
    async (request) => await hub.resolveDelivery(request.params.id, request.body, request.caller.name),
  )
}
