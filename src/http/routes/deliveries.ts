import {
  bulkReplySchema,
  deliveryViewSchema,
  operatorReplySchema,
  whyReplySchema,
} from '../../contract/delivery-views.js'
import { type OperatorAct, operatorActs } from '../../contract/hub.js'
import {
  actBody,
  bulkBody,
  deliveriesQuery,
  deliveriesReply,
  deliveryParams,
  heldReply,
  pageQuery,
  unknownReply,
} from '../../contract/wire.js'
import { access, requireHost } from '../access.js'
import { type App, type RouteParts, replies } from './parts.js'

const summaries: Readonly<Record<OperatorAct, string>> = {
  release: 'Held to queued; it passes the holds that stand now, once',
  reject: 'Held to failed',
  hold: 'An idle delivery to the held queue',
  cancel: 'An idle or held delivery to failed',
}

/** Deliveries: look at them, and decide about those that wait for someone. */
export function addDeliveryRoutes(app: App, parts: RouteParts): void {
  addReads(app, parts)
  addLists(app, parts)
  for (const act of operatorActs) addAct(app, parts, act)
}

function addReads(app: App, { hub }: RouteParts): void {
  app.get(
    '/v1/deliveries',
    {
      config: { access: access.hosts },
      schema: {
        operationId: 'listDeliveries',
        summary: 'Live deliveries by host and state, or those of a message; a node names its own host',
        description:
          'A page looks at a bounded number of rows and hosts: where few match, it may be empty and have a cursor all the same.',
        tags: ['deliveries'],
        querystring: deliveriesQuery,
        response: replies({ 200: deliveriesReply }),
      },
    },
    async (request) => {
      requireHost(request.caller, request.query.host)
      const { deliveries, cursor } = await hub.deliveries(request.query)
      return { deliveries, cursor }
    },
  )
  app.get(
    '/v1/deliveries/:id',
    {
      config: { access: access.hosts },
      schema: {
        operationId: 'getDelivery',
        summary: 'A delivery with its attempts and its timeline',
        tags: ['deliveries'],
        params: deliveryParams,
        response: replies({ 200: deliveryViewSchema }),
      },
    },
    async (request) => {
      const view = await hub.delivery(request.params.id)
      requireHost(request.caller, view.host)
      return view
    },
  )
  app.get(
    '/v1/deliveries/:id/why',
    {
      config: { access: access.hosts },
      schema: {
        operationId: 'whyDelivery',
        summary: 'Why a delivery is where it is',
        tags: ['deliveries'],
        params: deliveryParams,
        response: replies({ 200: whyReplySchema }),
      },
    },
    async (request) => {
      const why = await hub.why(request.params.id)
      requireHost(request.caller, why.host)
      return why
    },
  )
}

function addLists(app: App, { hub }: RouteParts): void {
  app.get(
    '/v1/held',
    {
      config: { access: access.readers },
      schema: {
        operationId: 'listHeld',
        summary: 'The held queue, oldest first',
        tags: ['deliveries'],
        querystring: pageQuery,
        response: replies({ 200: heldReply }),
      },
    },
    async (request) => {
      const { entries, cursor } = await hub.heldPage(request.query)
      return { held: entries, cursor }
    },
  )
  app.get(
    '/v1/unknown',
    {
      config: { access: access.readers },
      schema: {
        operationId: 'listUnknown',
        summary: 'Attempts whose outcome nobody knows, and deliveries in doubt, oldest first',
        tags: ['deliveries'],
        querystring: pageQuery,
        response: replies({ 200: unknownReply }),
      },
    },
    async (request) => {
      const { entries, cursor } = await hub.unknownPage(request.query)
      return { unknown: entries, cursor }
    },
  )
}

function addAct(app: App, { hub }: RouteParts, act: OperatorAct): void {
  app.post(
    `/v1/deliveries/${act}`,
    {
      config: { access: access.operators },
      schema: {
        operationId: `${act}Deliveries`,
        summary: `${summaries[act]}: every one on a page of those that a filter names`,
        tags: ['deliveries'],
        body: bulkBody,
        response: replies({ 200: bulkReplySchema }),
      },
    },
    async (request) => {
      const { filter, ...options } = request.body
      return await hub.actOnMany(act, filter, { ...options, actor: request.caller.name })
    },
  )
  app.post(
    `/v1/deliveries/:id/${act}`,
    {
      config: { access: access.operators },
      schema: {
        operationId: `${act}Delivery`,
        summary: summaries[act],
        tags: ['deliveries'],
        params: deliveryParams,
        body: actBody,
        response: replies({ 200: operatorReplySchema }),
      },
    },
    async (request) => {
      const done = act === 'hold' ? hub.holdDelivery : hub[act]
      return await done(request.params.id, { reason: request.body.reason, actor: request.caller.name })
    },
  )
}
