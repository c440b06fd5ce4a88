import type { IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, Socket } from 'node:net'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  RegisterOptions,
} from 'fastify'
import { z } from 'zod'
import { HoldfastError } from '../contract/errors.js'
import { name, option, optionsOf, redisAddress, whole } from '../contract/options.js'
import type { RedisAddress } from '../contract/redis-address.js'
import { followAnswer, refuseMalformed } from './connections.js'
import { embeddedIdentities, type HoldfastCaller } from './embedded-identities.js'
import { type HubApp, openHubApp } from './hub-app.js'
import { defaultLimits, type Limits } from './limits.js'
import { isLoopback } from './listen.js'
import { closingOnFailure, once } from './server.js'
import type { StartSweeper } from './sweeper.js'

/** The application that a hub is mounted in. */
export type OuterApp = FastifyInstance

/** Options of the plugin. */
export interface HoldfastOptions {
  /** URL of the server, Sentinels or Cluster that hold the record. */
  readonly redis: RedisAddress
  /** Name of the hub; `hf` when absent. */
  readonly hub?: string | undefined
  /** A pino logger; that of the application when absent. Bodies, tokens and queries are never logged. */
  readonly log?: FastifyBaseLogger | undefined
  /**
   * Says who speaks; the principals of the record when absent. It answers undefined for nobody: 401. What it throws with
   * `statusCode` 401 or 403 is answered so. It is asked after the hooks of the application, once a request.
   */
  readonly authenticate?: ((request: FastifyRequest) => Promise<HoldfastCaller | undefined>) | undefined
  /** What is taken on at most, where it is not to be the usual. */
  readonly limits?: Partial<Limits> | undefined
}

const limit = whole(0, Number.MAX_SAFE_INTEGER).optional()
const limitNames = Object.keys(defaultLimits) as (keyof Limits)[]

/** Of its options; those that fastify takes of every plugin come with them. */
export const pluginForm = optionsOf<HoldfastOptions & RegisterOptions>({
  redis: redisAddress,
  hub: name.hub.optional(),
  log: option.log,
  authenticate: option.function.optional(),
  limits: z.strictObject(Object.fromEntries(limitNames.map((each) => [each, limit]))).optional(),
  prefix: z.unknown().optional(),
  logLevel: z.unknown().optional(),
  logSerializers: z.unknown().optional(),
})

/** What is decided for the application: how sweeps run, and where its files are. */
export interface MountParts {
  readonly sweeps: StartSweeper
  readonly luaDir?: string | undefined
  readonly pageDir?: string | undefined
}

/**
 * Opens a hub and mounts all of it below the prefix of the scope: interface, page, events and health. Requests are
 * handed on with their bodies unread, and with the prefix taken off; the hub answers them itself.
 * @throws INVALID_ARGUMENT for an application of HTTP/2, STORE_UNKNOWN, STORE_UNAVAILABLE
 */
export async function mountHub(scope: OuterApp, options: HoldfastOptions & MountParts): Promise<void> {
  if ('http2' in scope.initialConfig && scope.initialConfig.http2 === true) {
    throw new HoldfastError(
      'INVALID_ARGUMENT',
      'the application speaks HTTP/2: a hub is mounted in one of HTTP/1',
    )
  }
  const { log = scope.log, authenticate } = options
  const limits: Limits = { ...defaultLimits, ...options.limits }
  const asked = new WeakMap<IncomingMessage, FastifyRequest>()
  const ask = async (raw: IncomingMessage) => {
    const request = asked.get(raw)
    return request === undefined ? undefined : await authenticate?.(request)
  }
  // While it does not listen only its own process reaches it. A socket of a file is for a proxy.
  const isLocal = () => {
    const places: readonly unknown[] = scope.addresses()
    return places.every((place) => isLoopback((place as Partial<AddressInfo>).address ?? ''))
  }
  const below = scope.prefix.replace(/\/$/, '') || undefined
  const { hub, close } = await closingOnFailure(log, async (closers, closeAll) => {
    const identities = authenticate === undefined ? undefined : embeddedIdentities(ask)
    const connectDeadlineMs = connectDeadlineIn(scope)
    const opened = await openHubApp(
      { ...options, log, isLocal, identities, below, connectDeadlineMs },
      closers,
    )
    await opened.app.ready()
    return {
      hub: opened,
      close: once(async () => {
        await opened.drain()
        await opened.app.close()
        await closeAll()
      }),
    }
  })
  // Before the application waits for its connections to end: streams would keep them.
  scope.addHook('preClose', async () => await hub.drain())
  scope.addHook('onClose', close)
  scope.addHook('onListen', async () => {
    if (isLocal() || hub.identities.anyExists) return
    log.warn({}, 'AUTHENTICATION_REQUIRED: no principal exists, so the hub knows nobody off loopback')
  })
  addRoutes(scope, (url, request, reply) => {
    asked.set(request.raw, request)
    handOver(hub, limits, url, reply)
  })
}

/** Of the time that fastify gives a plugin: its own error would not say what is wrong. */
const connectShare = 0.7
const connectAtMostMs = 10_000

/** Milliseconds for the first connection, so that it is given up before fastify gives up on the plugin. */
function connectDeadlineIn({ initialConfig }: OuterApp): number {
  const { pluginTimeout } = initialConfig as { readonly pluginTimeout?: number }
  return pluginTimeout ? Math.min(connectAtMostMs, connectShare * pluginTimeout) : connectAtMostMs
}

type Hand = (url: string, request: FastifyRequest, reply: FastifyReply) => void

/** Everything below the prefix. The prefix alone leads to the page, so that what that names beside itself is found. */
function addRoutes(scope: OuterApp, hand: Hand): void {
  const depth = scope.prefix.split('/').filter((part) => part !== '').length
  // Nothing is read here: the hub reads what it takes, and no more than that.
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', (_, __, done) => done(null))
  for (const url of depth === 0 ? ['/*'] : ['', '/*']) {
    scope.route({
      method: [...scope.supportedMethods],
      url,
      exposeHeadRoute: false,
      schema: { hide: true },
      handler: async (request, reply) => {
        const { origin, below, name, query } = split(request.raw.url ?? '', depth)
        if (below === '' && (request.method === 'GET' || request.method === 'HEAD')) {
          return reply.redirect(`./${name}/${query}`, 307)
        }
        reply.hijack()
        hand(`${origin}${below === '' ? '/' : below}${query}`, request, reply)
        return reply
      },
    })
  }
}

/** A URL, and what of its path is below so many parts: a prefix may have parameters in it. */
function split(url: string, depth: number) {
  const [, origin = '', path = '', query = ''] = /^((?:https?:\/\/[^/?#]*)?)([^?]*)(.*)$/is.exec(url) ?? []
  const parts = path.split('/')
  const rest = parts.slice(depth + 1)
  return { origin, below: rest.map((part) => `/${part}`).join(''), name: parts.at(-1) ?? '', query }
}

function handOver({ app }: HubApp, limits: Limits, url: string, reply: FastifyReply): void {
  const { raw: request } = reply.request
  const { raw: response } = reply
  const { url: whole = '' } = request
  // What hooks of the application said so far, but for what is of a body: that is the hub's.
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined && !/^(content-|transfer-encoding$)/.test(name)) response.setHeader(name, value)
  }
  keepTimes(limits, reply.server.server.timeout, request, response)
  followAnswer(request, response)
  request.url = url
  // The application's own hooks come after that, and its log: they know the URL as it was.
  const restore = () => {
    request.url = whole
  }
  response.prependOnceListener('finish', restore)
  response.prependOnceListener('close', restore)
  app.routing(request, response)
}

/** Requests of a hub that are under way on a connection. */
const underWay = new WeakMap<Socket, number>()

/**
 * The limits that a hub's own server sets for every connection: a request comes whole within its time, and nothing
 * that moves no more is kept. `usualMs` is what holds for the connection without a hub.
 */
function keepTimes(
  limits: Limits,
  usualMs: number,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { socket } = request
  if (!(socket instanceof Socket)) return // injected: there is no connection
  underWay.set(socket, (underWay.get(socket) ?? 0) + 1)
  socket.setTimeout(limits.stalledMs)
  // Before the server sets the time for which it keeps an idle connection.
  response.prependOnceListener('finish', () => {
    const left = (underWay.get(socket) ?? 1) - 1
    underWay.set(socket, left)
    if (left === 0) socket.setTimeout(usualMs)
  })
  if (request.complete) return
  const timer = setTimeout(() => {
    if (request.complete) return
    refuseMalformed(Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket)
  }, limits.requestMs).unref()
  request.once('close', () => clearTimeout(timer))
}
