import { randomUUID } from 'node:crypto'
import fastifyCookie from '@fastify/cookie'
import helmet from '@fastify/helmet'
import * as sse from '@fastify/sse'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyPluginAsync,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import { serializerCompiler } from 'fastify-type-provider-zod'
import { HoldfastError } from '../contract/errors.js'
import { lookAtDurability } from '../hub/durability.js'
import { type Hub, openHubParts } from '../hub/open-hub.js'
import { openStore } from '../record/connections.js'
import { functionsOf } from '../record/functions.js'
import { readerOf } from '../record/reader.js'
import { addAdmission } from './admission.js'
import { refuseMalformed } from './connections.js'
import { sharedEnd } from './ends.js'
import { addHeadCheck } from './heads.js'
import { startSampling } from './history.js'
import { type Identities, openIdentities } from './identities.js'
import { addJsonBodies } from './json-bodies.js'
import { defaultLimits, type Limits } from './limits.js'
import type { Listen } from './listen.js'
import { createMetrics } from './metrics.js'
import { addOpenApi } from './openapi.js'
import { addPage } from './page.js'
import { sendProblem } from './problem.js'
import { startPulse } from './pulse.js'
import { metricsPage, type Readiness, readiness } from './routes/health.js'
import { addRoutes } from './routes/index.js'
import type { App, RouteParts } from './routes/parts.js'
import type { ServerOptions } from './server.js'
import { addTracing } from './tracing.js'
import { compileValidator } from './validation.js'
import { startWatch } from './watch.js'
import { sweepWatch } from './watches.js'

/** A hub with all its routes, which listens nowhere yet. */
export interface HubApp {
  readonly app: App
  readonly hub: Hub
  readonly identities: Identities
  readiness(): Readiness
  /** Its metrics as text. */
  metrics(): Promise<string>
  /** Takes no more on; resolves once what is under way is answered, or the time for that is up. */
  drain(): Promise<void>
}

/** What is to be closed, in the order of opening: it is closed in the other one. */
export type Closers = (() => Promise<void> | void)[]

export interface HubAppOptions extends Omit<ServerOptions, 'listen'> {
  /** Absent where an application listens. */
  readonly listen?: Listen | undefined
  /** Whether this machine alone reaches it. */
  isLocal(): boolean
  /** The path under which it is reached, where that is not the root. */
  readonly below?: string | undefined
  /** One of several in this process, which shows the figures of the process itself. */
  readonly ofSet?: boolean
  /** Milliseconds for the first connection to Redis; as of a store when absent. */
  readonly connectDeadlineMs?: number | undefined
  /** In place of the principals of the record. */
  readonly identities?: Identities | undefined
}

/** Opens the hub and makes its routes. What it opened is pushed to `closers`, also where it throws. */
export async function openHubApp(options: HubAppOptions, closers: Closers): Promise<HubApp> {
  const { redis, isLocal, tls, log, luaDir, onPoint } = options
  const limits: Limits = { ...defaultLimits, ...options.limits }
  const metrics = createMetrics(options.ofSet === true ? { hub: options.hub ?? '' } : {})
  const onRepairError = (error: unknown) => log.warn({ err: error }, 'a fan-out is still cut')
  const opened = await openHubParts({
    redis,
    hub: options.hub,
    luaDir,
    connectDeadlineMs: options.connectDeadlineMs,
    onPoint,
    onRepairError,
    onLost: (messages) => {
      metrics.lost(messages.length)
      log.error({ messages }, 'accepted, and gone with the server that was replaced')
    },
    onCall: metrics.onCall,
  })
  const { hub, functions, reader, keys, tail } = opened
  closers.push(() => hub.close())
  const beatStore = await openStore({
    url: redis,
    tag: keys.tag,
    name: 'holdfast-beats',
    luaDir,
    onCall: metrics.onCall,
  })
  closers.push(() => beatStore.close())
  const beats = functionsOf(beatStore, keys.tag)
  const identities = options.identities ?? (await openIdentities({ reader, keys, tail, isLocal }))
  closers.push(() => identities.close())
  if (!isLocal() && !identities.anyExists) {
    const where = options.listen?.host ?? 'the application'
    throw new HoldfastError('AUTHENTICATION_REQUIRED', `${where} is not loopback, and no principal exists`)
  }
  const pulse = await startPulse({
    reader: readerOf(beatStore, keys),
    keys,
    onChange: (trouble) => {
      if (trouble === undefined) log.info({}, 'the record is right again')
      else log.error({ trouble }, 'the record is not right: the hub is not ready')
    },
  })
  closers.push(() => pulse.stop())

  const sweeper = await options.sweeps(opened)
  closers.push(() => sweeper.stop())
  const durability = await startWatch({
    everyMs: durabilityEveryMs,
    look: () => lookAtDurability(opened),
    onChange: (trouble) => {
      if (trouble === undefined) log.info({}, 'the server keeps what it is given again')
      else log.error({ trouble }, 'the server may lose what it is given: the hub is not ready')
    },
  })
  closers.push(() => durability.stop())
  const sweeping = await startWatch({
    everyMs: sweepsEveryMs,
    look: sweeper.scheduled ? sweepWatch(opened) : async () => undefined,
    onChange: (trouble) => log.warn({ trouble }, 'sweeps'),
  })
  closers.push(() => sweeping.stop())

  const sampling = startSampling({ reader, keys })
  closers.push(() => sampling.stop())

  const closing = sharedEnd()
  const app = makeApp(log, limits, options.ofSet === true ? undefined : tls)
  const parts: RouteParts = {
    hub,
    functions,
    beats,
    reader,
    keys,
    tail,
    identities,
    sweeper,
    onPoint,
    closing: closing.signal,
  }
  addTracing(app)
  addHeadCheck(app)
  const admission = await addAdmission(app, { ...parts, limits, metrics, pulse, log })
  await addPageHeaders(app, tls !== undefined)
  // It sets cookies alone: identities read them, and strictly.
  await app.register(fastifyCookie, { hook: false })
  await app.register(ssePlugin, { heartbeatInterval: 15_000 })
  await addOpenApi(app, options.below)
  await addPage(app, options.pageDir)
  const all = {
    ...parts,
    metrics,
    pulse,
    durability,
    attesting: opened.attesting,
    sweeping,
    sampling,
    limits,
    waiting: admission.waiting,
  }
  await app.register(async (scope) => addRoutes(scope as unknown as App, all))
  return {
    app,
    hub,
    identities,
    readiness: () => readiness(all),
    metrics: metricsPage(all),
    drain: async () => {
      closing.abort()
      await admission.idle(limits.drainMs)
    },
  }
}

const durabilityEveryMs = 2000
const sweepsEveryMs = 5000

/** The package's types describe an ES module; it is a CommonJS one, whose default is the plugin itself. */
const ssePlugin = sse.default as unknown as FastifyPluginAsync<sse.SSEPluginOptions>

/** Over plain HTTP a browser must not be told to come back by HTTPS. */
export async function addPageHeaders(app: App, secure: boolean): Promise<void> {
  await app.register(helmet, {
    strictTransportSecurity: secure,
    contentSecurityPolicy: { directives: { upgradeInsecureRequests: secure ? [] : null } },
  })
}

/** A server without routes, with the limits that hold for every connection. */
export function makeApp(log: FastifyBaseLogger, limits: Limits, tls: ServerOptions['tls']): App {
  const common = {
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: limits.smallBodyBytes,
    connectionTimeout: limits.stalledMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    forceCloseConnections: true,
    return503OnClosing: false,
    genReqId: () => randomUUID(),
    routerOptions: { maxParamLength: 2000 },
    clientErrorHandler: refuseMalformed,
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      sendProblem(error, request, reply)
    },
  }
  const http = {
    headersTimeout: limits.headersMs,
    connectionsCheckingInterval: 1000,
    requireHostHeader: false, // the check of heads says so in a problem
  }
  const secure = {
    cert: tls?.certificate,
    key: tls?.key,
    minVersion: 'TLSv1.2',
    // Certificates are pinned by fingerprint: who signed them says nothing here.
    requestCert: true,
    rejectUnauthorized: false,
    handshakeTimeout: limits.headersMs,
    ...http,
  } as const
  const app = (tls === undefined
    ? Fastify({ ...common, http })
    : Fastify({ ...common, https: secure })) as unknown as App
  app.setValidatorCompiler(compileValidator)
  app.setSerializerCompiler(serializerCompiler)
  addJsonBodies(app, limits)
  app.setErrorHandler((error, request, reply) => sendProblem(error, request, reply))
  return app
}
