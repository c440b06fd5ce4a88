import type { IncomingMessage, ServerResponse } from 'node:http'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { z } from 'zod'
import { checkedHubs, naming } from '../contract/hub-set.js'
import { hubsReply, setReadyReply } from '../contract/wire.js'
import type { Hub } from '../hub/open-hub.js'
import { access, requireRole } from './access.js'
import { followAnswers } from './connections.js'
import { watchCrowds } from './crowds.js'
import { addHeadCheck } from './heads.js'
import { addPageHeaders, type Closers, type HubApp, makeApp, openHubApp } from './hub-app.js'
import { defaultLimits } from './limits.js'
import { addPage } from './page.js'
import { problem } from './problem.js'
import { watchMethods } from './routes/index.js'
import { type App, replies } from './routes/parts.js'
import { closingOnFailure, listenOn, once, type ServerOptions, startServer } from './server.js'
import { onePage } from './set-metrics.js'

export interface SetServerOptions extends Omit<ServerOptions, 'hub'> {
  readonly hubs: readonly string[]
}

/** Hubs that answer over HTTP at one address. */
export interface HubSetServer {
  readonly url: string
  readonly hubs: ReadonlyMap<string, Hub>
  /** Takes no more on, answers what is under way and who waits, then closes. */
  close(): Promise<void>
}

/**
 * Opens the hubs of a set and serves them at one address: each as a server of its own would, below `/hubs/<name>`,
 * with the health and the metrics of all of them at the root. A set of one is served as that hub, at the root.
 * @throws AUTHENTICATION_REQUIRED off loopback while no principal exists, STORE_UNKNOWN, STORE_UNAVAILABLE,
 *   INVALID_ARGUMENT (the names, the address, the certificate)
 */
export async function startSetServer({ hubs, ...options }: SetServerOptions): Promise<HubSetServer> {
  const names = checkedHubs(hubs)
  const [only, second] = names
  if (only !== undefined && second === undefined) {
    const { url, hub, close } = await startServer({ ...options, hub: only })
    return { url, hubs: new Map([[only, hub]]), close }
  }
  const { log, listen, tls } = options
  return await closingOnFailure(log, async (closers, closeAll) => {
    const apps = await openApps(names, options, closers)
    const front = await makeFront(apps, options)
    for (const { app } of apps.values()) await app.ready()
    dispatch(front, apps)
    followAnswers(front.server)
    const url = await listenOn(front, listen, tls !== undefined)
    closers.push(watchCrowds(front.server))
    return {
      url,
      hubs: new Map([...apps].map(([name, { hub }]) => [name, hub])),
      close: once(async () => {
        await Promise.all([...apps.values()].map(({ drain }) => drain()))
        await front.close()
        await Promise.all([...apps.values()].map(({ app }) => app.close()))
        await closeAll()
      }),
    }
  })
}

/** All at once; where one fails, those that opened are left in `closers`. */
async function openApps(
  names: readonly string[],
  options: Omit<ServerOptions, 'hub'>,
  closers: Closers,
): Promise<ReadonlyMap<string, HubApp>> {
  const opening = names.map((hub) => {
    const own: Closers = []
    closers.push(async () => {
      for (const close of own.reverse()) await close()
    })
    const log = options.log.child({ hub })
    return naming(hub, () => openHubApp({ ...options, log, hub, ofSet: true }, own))
  })
  // Until every one is open or failed: what opens after that would be closed by nobody.
  await Promise.allSettled(opening)
  const apps = await Promise.all(opening)
  return new Map(names.map((name, at) => [name, apps[at] as HubApp]))
}

/**
 * Below a hub's name everything is that hub's, as if it stood at the root of a server of its own. The name alone
 * leads there, so that what a page names relative to itself is found.
 */
function dispatch(front: App, apps: ReadonlyMap<string, HubApp>): void {
  const { server, routing } = front
  server.off('request', routing)
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const [, origin = '', name = '', rest = ''] = belowHub.exec(request.url ?? '') ?? []
    const found = apps.get(name)
    const looks = request.method === 'GET' || request.method === 'HEAD'
    if (found === undefined || (looks && !rest.startsWith('/'))) return routing(request, response)
    request.url = `${origin}${rest.startsWith('/') ? '' : '/'}${rest}`
    return found.app.routing(request, response)
  })
}

/** The absolute form of a request line has the origin before the path. */
const belowHub = /^((?:https?:\/\/[^/?#]*)?)\/hubs\/([^/?#]+)((?:[/?].*)?)$/i

/** What is at the root: the names, health and metrics of all hubs. */
async function makeFront(
  apps: ReadonlyMap<string, HubApp>,
  { log, limits, tls, pageDir }: Omit<ServerOptions, 'hub'>,
): Promise<App> {
  const app = makeApp(log, { ...defaultLimits, ...limits }, tls)
  addHeadCheck(app)
  await addPageHeaders(app, tls !== undefined)
  await addPage(app, pageDir)
  await app.register(async (scope) => addRootRoutes(scope as unknown as App, apps))
  return app
}

function addRootRoutes(app: App, apps: ReadonlyMap<string, HubApp>): void {
  const refuseOthers = watchMethods(app)
  const names = [...apps.keys()]
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })

  app.get('/hubs', { schema: { response: replies({ 200: hubsReply }) } }, async () => ({ hubs: names }))
  for (const name of names) {
    app.get(`/hubs/${name}`, async (request, reply) => {
      const [, query = ''] = /(\?.*)$/.exec(request.url) ?? []
      return reply.redirect(`${name}/${query}`, 307)
    })
  }
  app.get('/livez', async (_, reply) => reply.type('text/plain').send('ok\n'))
  app.get(
    '/readyz',
    { schema: { response: { 200: setReadyReply, 503: setReadyReply } } },
    async (_, reply) => {
      const hubs = Object.fromEntries([...apps].map(([name, each]) => [name, each.readiness()]))
      const notReady = names.filter((name) => hubs[name]?.ready !== true)
      const ready = notReady.length === 0
      return reply.code(ready ? 200 : 503).send({ ready, notReady, hubs })
    },
  )
  app.get('/metrics', { schema: { response: replies({ 200: metricsAnswer }) } }, async (request, reply) => {
    for (const { identities } of apps.values()) {
      requireRole(await identities.authenticate(request.raw), access.readers)
    }
    const pages = await Promise.all([...apps.values()].map(({ metrics }) => metrics()))
    return reply.type(registry.contentType).send(onePage([await registry.metrics(), ...pages]))
  })
  refuseOthers()
  app.setNotFoundHandler(async ({ method, url }) => {
    const path = url.split('?', 1)[0]?.slice(0, 200)
    throw problem(
      'ROUTE_NOT_FOUND',
      `no route ${method} ${path}: a set of hubs is served here, each below /hubs/<name>, of ${names.join(', ')}`,
    )
  })
}

const metricsAnswer = {
  description: 'every metric of every hub',
  content: { 'text/plain': { schema: z.string() } },
}
