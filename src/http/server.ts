import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
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
import type { OnPoint } from '../contract/points.js'
import type { RedisAddress } from '../contract/redis-address.js'
import { type Hub, openHubParts } from '../hub/open-hub.js'
import { openStore } from '../record/connections.js'
import { functionsOf } from '../record/functions.js'
import { readerOf } from '../record/reader.js'
import { addAdmission } from './admission.js'
import { followAnswers, refuseMalformed } from './connections.js'
import { watchCrowds } from './crowds.js'
import { sharedEnd } from './ends.js'
import { addHeadCheck } from './heads.js'
import { openIdentities } from './identities.js'
import { addJsonBodies } from './json-bodies.js'
import { defaultLimits, type Limits } from './limits.js'
import { isLoopback, type Listen } from './listen.js'
import { createMetrics } from './metrics.js'
import { addOpenApi } from './openapi.js'
import { sendProblem } from './problem.js'
import { startPulse } from './pulse.js'
import { addRoutes } from './routes/index.js'
import type { App, RouteParts } from './routes/parts.js'
import type { StartSweeper } from './sweeper.js'
import { addTracing } from './tracing.js'
import { compileValidator } from './validation.js'
import { startWatch } from './watch.js'
import { lookAtDurability, sweepWatch } from './watches.js'

export interface ServerOptions {
  /** URL of the server, Sentinels or Cluster that hold the record. */
  readonly redis: RedisAddress
  /** Name of the hub; `hf` when absent. */
  readonly hub?: string | undefined
  readonly listen: Listen
  /** PEM texts: HTTPS, where clients may show a certificate that a principal pins. */
  readonly tls?: { readonly certificate: string; readonly key: string } | undefined
  /** A pino logger. Bodies, tokens and queries are never logged. */
  readonly log: FastifyBaseLogger
  readonly limits?: Partial<Limits> | undefined
  /** What runs the sweeps. */
  readonly sweeps: StartSweeper
  /** Where the Lua sources are; the package's own when absent. */
  readonly luaDir?: string | undefined
  /** Tests only: see `points`. */
  readonly onPoint?: OnPoint | undefined
}

/** A hub that answers over HTTP. */
export interface HubServer {
  readonly url: string
  readonly hub: Hub
  /** Takes no more on, answers what is under way and who waits, then closes. */
  close(): Promise<void>
}

/**
 * Opens a hub and serves it (contract section 10).
 * @throws AUTHENTICATION_REQUIRED off loopback while no principal exists, STORE_UNKNOWN, STORE_UNAVAILABLE,
 *   INVALID_ARGUMENT (the address, the certificate)
 */
export async function startServer(options: ServerOptions): Promise<HubServer> {
  const { log } = options
  const closers: (() => Promise<void> | void)[] = []
  const closeAll = async () => {
    for (const close of closers.splice(0).reverse()) await close()
  }
  try {
    return await open(options, closers, closeAll)
  } catch (error) {
    await closeAll().catch((cause: unknown) => log.error({ err: cause }, 'could not close'))
    throw error
  }
}

async function open(
  options: ServerOptions,
  closers: (() => Promise<void> | void)[],
  closeAll: () => Promise<void>,
): Promise<HubServer> {
  const { redis, listen, tls, log, luaDir, onPoint } = options
  const limits: Limits = { ...defaultLimits, ...options.limits }
  const metrics = createMetrics()
  const onRepairError = (error: unknown) => log.warn({ err: error }, 'a fan-out is still cut')
  const opened = await openHubParts({
    redis,
    hub: options.hub,
    luaDir,
    onPoint,
    onRepairError,
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
  const loopback = isLoopback(listen.host)
  const identities = await openIdentities({ reader, keys, tail, loopback })
  closers.push(() => identities.close())
  if (!loopback && !identities.anyExists) {
    throw new HoldfastError(
      'AUTHENTICATION_REQUIRED',
      `${listen.host} is not loopback, and no principal exists`,
    )
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

  const closing = sharedEnd()
  const app = makeApp(log, limits, tls)
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
  followAnswers(app.server)
  const admission = await addAdmission(app, { ...parts, limits, metrics, pulse, log })
  // Over plain HTTP a browser must not be told to come back by HTTPS.
  await app.register(helmet, {
    strictTransportSecurity: tls !== undefined,
    contentSecurityPolicy: { directives: { upgradeInsecureRequests: tls === undefined ? null : [] } },
  })
  await app.register(ssePlugin, { heartbeatInterval: 15_000 })
  await addOpenApi(app)
  await app.register(async (scope) => {
    addRoutes(scope as unknown as App, {
      ...parts,
      metrics,
      pulse,
      durability,
      attesting: opened.attesting,
      sweeping,
      limits,
      waiting: admission.waiting,
    })
  })
  const url = await listenOn(app, listen, tls !== undefined)
  closers.push(watchCrowds(app.server))
  let ending: Promise<void> | undefined
  async function end(): Promise<void> {
    closing.abort()
    await admission.idle(limits.drainMs)
    await app.close()
    await closeAll()
  }
  return {
    url,
    hub,
    close: () => {
      ending ??= end()
      return ending
    },
  }
}

const durabilityEveryMs = 2000
const sweepsEveryMs = 5000

/** The package's types describe an ES module; it is a CommonJS one, whose default is the plugin itself. */
const ssePlugin = sse.default as unknown as FastifyPluginAsync<sse.SSEPluginOptions>

function makeApp(log: FastifyBaseLogger, limits: Limits, tls: ServerOptions['tls']): App {
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

/** Connections that may wait to be taken up, where the system allows as many. */
const connectionsAtOnce = 4096

async function listenOn(app: App, listen: Listen, secure: boolean): Promise<string> {
  try {
    await app.listen({
      host: listen.host,
      port: listen.port,
      backlog: connectionsAtOnce,
      listenTextResolver: (at) => `listening at ${at}`,
    })
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === undefined || !(code.startsWith('E') || code.startsWith('ERR_'))) throw error
    throw new HoldfastError('INVALID_ARGUMENT', `cannot listen on ${listen.host}:${listen.port} (${code})`, {
      cause: error,
    })
  }
  const { address, port } = app.server.address() as AddressInfo
  const host = address.includes(':') ? `[${address}]` : address
  return `${secure ? 'https' : 'http'}://${host}:${port}`
}
