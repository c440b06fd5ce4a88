import { z } from 'zod'
import { fenceReplySchema, type HostView, hostViewSchema } from '../../contract/host-views.js'
import {
  actBody,
  countsReply,
  hostParams,
  hostsQuery,
  hostsReply,
  pageQuery,
  pendingReply,
} from '../../contract/wire.js'
import type { Hub } from '../../hub/open-hub.js'
import { access, requireHost } from '../access.js'
import { problem } from '../problem.js'
import { type App, type RouteParts, replies } from './parts.js'

/** Hosts: what waits for them, and taking them out of service. */
export function addHostRoutes(app: App, parts: RouteParts): void {
  addReads(app, parts)
  addActs(app, parts)
}

function addReads(app: App, { hub }: RouteParts): void {
  app.get(
    '/v1/hosts',
    {
      config: { access: access.readers },
      schema: {
        operationId: 'listHosts',
        summary: 'Hosts by name, with their nodes and what waits for them',
        tags: ['hosts'],
        querystring: hostsQuery,
        response: replies({ 200: hostsReply }),
      },
    },
    async (request) => {
      const { entries, cursor } = await hub.hostPage(request.query)
      return { hosts: entries, cursor }
    },
  )
  app.get(
    '/v1/hosts/:host',
    {
      config: { access: access.hosts },
      schema: {
        operationId: 'getHost',
        summary: 'A host with its nodes and what waits for it',
        tags: ['hosts'],
        params: hostParams,
        response: replies({ 200: hostViewSchema }),
      },
    },
    async (request) => {
      const { host } = request.params
      requireHost(request.caller, host)
      return await hostOrNone(hub, host)
    },
  )
  app.get(
    '/v1/hosts/:host/pending',
    {
      config: { access: access.hosts },
      schema: {
        operationId: 'listPending',
        summary: 'The pending list of a host as Redis has it, beside the rows it should agree with',
        tags: ['hosts'],
        params: hostParams,
        querystring: pageQuery,
        response: replies({ 200: pendingReply }),
      },
    },
    async (request) => {
      const { host } = request.params
      requireHost(request.caller, host)
      const { entries, cursor } = await hub.pendingPage(host, request.query)
      return { pending: entries, cursor }
    },
  )
  app.get(
    '/v1/counts',
    {
      config: { access: access.readers },
      schema: {
        operationId: 'getCounts',
        summary: 'Deliveries by state and attempts by outcome, as counted',
        tags: ['hosts'],
        response: replies({ 200: countsReply }),
      },
    },
    async () => ({ counts: await hub.counts() }),
  )
}

function addActs(app: App, { hub }: RouteParts): void {
  app.post(
    '/v1/hosts/:host/drain',
    {
      config: { access: access.operators },
      schema: {
        operationId: 'drainHost',
        summary: 'Pause a host with the reason `drain`: what runs is finished, nothing new begins',
        tags: ['hosts'],
        params: hostParams,
        // A drain has one reason always, by which it is known.
        body: z.strictObject({}).nullish(),
        response: replies({ 200: fenceReplySchema }),
      },
    },
    async (request) => await hub.drain(request.params.host, request.caller.name),
  )
  app.post(
    '/v1/hosts/:host/retire',
    {
      config: { access: access.operators },
      schema: {
        operationId: 'retireHost',
        summary: 'Take a host out for good: its idle deliveries go to the held queue',
        tags: ['hosts'],
        params: hostParams,
        body: actBody,
        response: replies({ 200: hostViewSchema }),
      },
    },
    async (request) => {
      const { host } = request.params
      await hub.retire(host, { reason: request.body.reason, actor: request.caller.name })
      return await hostOrNone(hub, host)
    },
  )
}

/** @throws HOST_NOT_FOUND */
async function hostOrNone(hub: Hub, host: string): Promise<HostView> {
  const view = await hub.host(host)
  if (view === undefined) throw problem('HOST_NOT_FOUND', `no host ${host} was ever seen`)
  return view
}
