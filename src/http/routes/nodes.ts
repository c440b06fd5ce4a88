import { z } from 'zod'
import type { NodeIdentity, StepOptions, StepResult } from '../../contract/steps.js'
import { hostParams, nodeParams } from '../../contract/wire.js'
import {
  beginBody,
  heartbeatBody,
  heartbeatReply,
  joinBody,
  joinReply,
  leaveQuery,
  refuseBody,
  stepBody,
  stepReply,
} from '../../contract/wire-nodes.js'
import { access, requireHost, requireScopes } from '../access.js'
import type { Caller } from '../identities.js'
import { type App, type RouteParts, replies } from './parts.js'
import { answeredBy } from './results.js'

/** What a node says: joined, alive, leaving, and its steps on deliveries. A node does so for its own host. */
export function addNodeRoutes(app: App, parts: RouteParts): void {
  addMembership(app, parts)
  addLeave(app, parts)
  addSteps(app, parts)
}

function addMembership(app: App, { functions, beats }: RouteParts): void {
  app.post(
    '/v1/hosts/:host/nodes/:node',
    {
      config: { access: access.nodes },
      schema: {
        operationId: 'join',
        summary: 'Join: a higher incarnation supersedes the earlier process of the node',
        tags: ['nodes'],
        params: nodeParams,
        body: joinBody,
        response: replies({ 200: joinReply }),
      },
    },
    async (request) => {
      const { host, node } = request.params
      const { incarnation, instance, scopes = [], lastLogId = '0-0' } = request.body
      requireHost(request.caller, host)
      requireScopes(request.caller, scopes, '#/scopes')
      const joined = await functions.join({ host, node, incarnation }, instance, scopes, lastLogId)
      const { heartbeatMs, staleAfterMs, maxResultBytes, maxRedrive } = joined
      return {
        now: joined.nowMs,
        logId: joined.logId,
        config: { heartbeatMs, staleAfterMs, maxResultBytes, maxRedrive },
        storeId: joined.storeId,
        generation: joined.generation,
        badSettings: joined.badSettings,
      }
    },
  )
  app.put(
    '/v1/hosts/:host/nodes/:node',
    {
      config: { access: access.nodes },
      schema: {
        operationId: 'heartbeat',
        summary: 'Heartbeat: this process lives',
        tags: ['nodes'],
        params: nodeParams,
        body: heartbeatBody,
        response: replies({ 200: heartbeatReply }),
      },
    },
    async (request) => {
      const { host, node } = request.params
      requireHost(request.caller, host)
      const { incarnation, lastLogId = '0-0', progress = 0, blocking, mirror } = request.body
      const beat = await beats.heartbeat(
        { host, node, incarnation },
        {
          lastLogId,
          progressAgeMs: progress,
          blocking: blocking ?? { sumMs: 0, longestMs: 0 },
          ...(mirror === undefined ? {} : { mirror }),
        },
      )
      const { nowMs: now, logId, heartbeatMs, staleAfterMs } = beat
      return { now, logId, heartbeatMs, staleAfterMs }
    },
  )
}

function addLeave(app: App, { functions }: RouteParts): void {
  app.delete(
    '/v1/hosts/:host/nodes/:node',
    {
      config: { access: access.nodes },
      schema: {
        operationId: 'leave',
        summary: 'Leave: what the node owns and has not begun may be taken over at once, uncounted',
        tags: ['nodes'],
        params: nodeParams,
        querystring: leaveQuery,
        response: replies({ 204: z.null().optional().describe('the node has left; there is no body') }),
      },
    },
    async (request, reply) => {
      const { host, node } = request.params
      requireHost(request.caller, host)
      await functions.leave({ host, node, incarnation: request.query.incarnation })
      return await reply.code(204).send(undefined)
    },
  )
}

interface StepRequest<Item> {
  readonly caller: Caller
  readonly params: { readonly host: string }
  readonly body: { readonly node: string; readonly incarnation: number; readonly items: readonly Item[] }
}

type Step<Item> = (
  who: NodeIdentity,
  items: readonly Item[],
  options: StepOptions,
) => Promise<readonly StepResult[]>

/** One step on a batch of deliveries of the host in the path. */
function stepBy<Item>(step: Step<Item>) {
  return async ({ caller, params: { host }, body: { node, incarnation, items } }: StepRequest<Item>) => {
    requireHost(caller, host)
    return await answeredBy((options) => step({ host, node, incarnation }, items, options))
  }
}

function addSteps(app: App, { functions }: RouteParts): void {
  const common = { tags: ['nodes'], params: hostParams, response: replies({ 200: stepReply }) }
  const config = { access: access.nodes }
  app.post(
    '/v1/hosts/:host/mirror',
    {
      config,
      schema: {
        operationId: 'mirror',
        summary: "The node's copies are durable",
        body: stepBody,
        ...common,
      },
    },
    stepBy(functions.mirror),
  )
  app.post(
    '/v1/hosts/:host/ack',
    {
      config,
      schema: {
        operationId: 'ack',
        summary: 'Durable handoff receipt: the entries leave stream and pending list',
        body: stepBody,
        ...common,
      },
    },
    stepBy(functions.ack),
  )
  app.post(
    '/v1/hosts/:host/refuse',
    {
      config,
      schema: {
        operationId: 'refuse',
        summary: 'The node cannot take these, or cannot tell whether its copies are good',
        body: refuseBody,
        ...common,
      },
    },
    stepBy(functions.refuse),
  )
  app.post(
    '/v1/hosts/:host/begin',
    {
      config,
      schema: {
        operationId: 'begin',
        summary: 'Open attempts under grants: the only permission to execute',
        body: beginBody,
        ...common,
      },
    },
    stepBy(functions.begin),
  )
}
