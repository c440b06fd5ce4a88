import { fenceReplySchema, liftReplySchema } from '../../contract/host-views.js'
import { fenceBody, fenceParams, fencesReply } from '../../contract/wire.js'
import { access } from '../access.js'
import { type App, type RouteParts, replies } from './parts.js'

/** Fences: the rules that claims and begins obey. */
export function addFenceRoutes(app: App, { hub }: RouteParts): void {
  app.get(
    '/v1/fences',
    {
      config: { access: access.readers },
      schema: {
        operationId: 'listFences',
        summary: 'The fences that stand, and fields of their hash that no rule reads',
        tags: ['fences'],
        response: replies({ 200: fencesReply }),
      },
    },
    async () => ({ fences: await hub.fences() }),
  )
  app.put(
    '/v1/fences/:kind/:scope',
    {
      config: { access: access.operators },
      schema: {
        operationId: 'setFence',
        summary: 'Set a fence, or change its reason and expiry',
        tags: ['fences'],
        params: fenceParams,
        body: fenceBody,
        response: replies({ 200: fenceReplySchema }),
      },
    },
    async (request) => {
      const { kind, scope } = request.params
      const { reason, until } = request.body
      return await hub[kind](scope, { reason, until, actor: request.caller.name })
    },
  )
  app.delete(
    '/v1/fences/:kind/:scope',
    {
      config: { access: access.operators },
      schema: {
        operationId: 'liftFence',
        summary: 'Lift a fence: what a pause parked is served next, what a hold held is queued again',
        tags: ['fences'],
        params: fenceParams,
        response: replies({ 200: liftReplySchema }),
      },
    },
    async (request) => {
      const { kind, scope } = request.params
      return await hub.lift(kind, scope, request.caller.name)
    },
  )
}
