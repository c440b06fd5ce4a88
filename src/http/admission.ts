import rateLimit from '@fastify/rate-limit'
import underPressure from '@fastify/under-pressure'
import type { FastifyBaseLogger, FastifyRequest } from 'fastify'
import { requireRole } from './access.js'
import type { Caller } from './identities.js'
import type { Limits } from './limits.js'
import type { Metrics } from './metrics.js'
import { problem } from './problem.js'
import type { Pulse } from './pulse.js'
import type { App, RouteParts } from './routes/parts.js'

export interface AdmissionParts extends RouteParts {
  readonly limits: Limits
  readonly metrics: Metrics
  readonly pulse: Pulse
  readonly log: FastifyBaseLogger
}

/** What stands before every route: identity, role, rate, and a bound on the work under way. */
export interface Admission {
  /** Requests that wait for something now. */
  waiting(): number
  /** Resolves when nothing is under way, or the time is up. */
  idle(ms: number): Promise<void>
}

export async function addAdmission(app: App, parts: AdmissionParts): Promise<Admission> {
  const { identities, limits, metrics, closing, log } = parts
  const counted = new WeakSet<FastifyRequest>()
  let underWay = 0
  let waiting = 0
  let whenIdle: () => void = () => undefined

  app.decorateRequest('caller', null as unknown as Caller)
  await app.register(underPressure, {
    maxEventLoopDelay: limits.lagMs,
    pressureHandler: (request: FastifyRequest) => {
      if (request.routeOptions.config.access === 'public') return
      throw problem('OVERLOADED', 'the event loop of this hub lags')
    },
  })

  app.addHook('onRequest', async (request) => {
    const { access = [], waits = false } = request.routeOptions.config
    if (access === 'public' || request.is404) return
    if (closing.aborted) throw problem('SHUTTING_DOWN', 'this hub takes nothing on any more')
    if (!waits && underWay >= limits.underWay) {
      throw problem('OVERLOADED', `${underWay} requests are under way on this hub`)
    }
    counted.add(request)
    if (waits) waiting += 1
    else underWay += 1
    request.caller = await identities.authenticate(request.raw)
    requireRole(request.caller, access)
  })
  await addRateLimit(app, limits)

  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions } = request
    const tookMs = reply.elapsedTime
    if (counted.delete(request)) {
      if (routeOptions.config.waits === true) waiting -= 1
      else underWay -= 1
      if (underWay + waiting === 0) whenIdle()
    }
    metrics.requestOver(method, routeOptions.url ?? 'none', reply.statusCode, tookMs)
    const principal = (request.caller as Caller | null)?.name
    const path = request.url.split('?', 1)[0]?.slice(0, 300)
    log.debug(
      {
        requestId: request.id,
        method,
        path,
        status: reply.statusCode,
        tookMs: Math.round(tookMs),
        principal,
      },
      'answered',
    )
  })

  app.addHook('onSend', async (_, reply) => {
    if (closing.aborted) reply.header('connection', 'close')
  })

  return {
    waiting: () => waiting,
    idle: (ms) =>
      new Promise((resolve) => {
        if (underWay + waiting === 0) return resolve()
        const timer = setTimeout(resolve, ms)
        whenIdle = () => {
          clearTimeout(timer)
          resolve()
        }
      }),
  }
}

const rateWindowSeconds = 10

/** A rate for each principal, so that one that runs wild does not keep the others out. */
async function addRateLimit(app: App, limits: Limits): Promise<void> {
  if (limits.ratePerSecond === 0) return
  await app.register(rateLimit, {
    hook: 'preParsing',
    max: limits.ratePerSecond * rateWindowSeconds,
    timeWindow: rateWindowSeconds * 1000,
    cache: 20_000,
    keyGenerator: (request: FastifyRequest) => (request.caller as Caller | null)?.name ?? request.ip,
    allowList: (request: FastifyRequest) => request.routeOptions.config.access === 'public',
    errorResponseBuilder: (_, context) =>
      problem('RATE_LIMITED', `more than ${limits.ratePerSecond} requests a second`, {
        current: context.max,
        retryAfterSeconds: Math.max(1, Math.ceil(context.ttl / 1000)),
      }),
  })
}
