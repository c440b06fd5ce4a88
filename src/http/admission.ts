import rateLimit from '@fastify/rate-limit'
import underPressure from '@fastify/under-pressure'
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
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

/**
 * Where a request stands. While its body arrives it costs a client little to keep it there, so that this counts
 * for nobody else: only `working` is bounded.
 */
type Stage = 'arriving' | 'working' | 'waiting'

export async function addAdmission(app: App, parts: AdmissionParts): Promise<Admission> {
  const { identities, limits, metrics, closing, log } = parts
  const stages = new WeakMap<FastifyRequest, Stage>()
  const counts: Record<Stage, number> = { arriving: 0, working: 0, waiting: 0 }
  let whenIdle: () => void = () => undefined

  app.decorateRequest('caller', null as unknown as Caller)
  await app.register(underPressure, {
    maxEventLoopDelay: limits.lagMs,
    pressureHandler: (request: FastifyRequest) => {
      if (request.routeOptions.config.access === 'public') return
      throw problem('OVERLOADED', 'the event loop of this hub lags')
    },
  })

  // The hook onResponse would miss every request whose client goes before it is answered.
  app.addHook('onRequest', async (request, reply) => {
    reply.raw.once('close', () => over(request, reply))
  })
  app.addHook('onRequest', async (request) => {
    const { access = [], waits = false } = request.routeOptions.config
    if (access === 'public' || request.is404) return
    if (closing.aborted) throw problem('SHUTTING_DOWN', 'this hub takes nothing on any more')
    takeOn(request, waits)
    request.caller = await identities.authenticate(request.raw)
    requireRole(request.caller, access)
    if (stages.has(request)) enter(request, 'arriving')
  })
  await addRateLimit(app, limits)
  app.addHook('preValidation', async (request) => {
    if (stages.has(request)) takeOn(request, request.routeOptions.config.waits === true)
  })

  function takeOn(request: FastifyRequest, waits: boolean): void {
    if (!waits && counts.working >= limits.underWay) {
      throw problem('OVERLOADED', `${counts.working} requests are under way on this hub`)
    }
    if (waits && counts.waiting >= limits.waiting) {
      throw problem('OVERLOADED', `${counts.waiting} requests wait on this hub already`)
    }
    enter(request, waits ? 'waiting' : 'working')
  }

  function enter(request: FastifyRequest, stage: Stage): void {
    leave(request)
    stages.set(request, stage)
    counts[stage] += 1
  }

  function leave(request: FastifyRequest): void {
    const stage = stages.get(request)
    if (stage !== undefined) counts[stage] -= 1
    stages.delete(request)
  }

  function isIdle(): boolean {
    return counts.arriving + counts.working + counts.waiting === 0
  }

  function over(request: FastifyRequest, reply: FastifyReply): void {
    const { method, routeOptions } = request
    const { headersSent, writableFinished } = reply.raw
    const tookMs = reply.elapsedTime
    const status = headersSent ? reply.statusCode : statusOfGone
    leave(request)
    if (isIdle()) whenIdle()
    metrics.requestOver(method, routeOptions.url ?? 'none', status, tookMs)
    const principal = (request.caller as Caller | null)?.name
    const path = request.url.split('?', 1)[0]?.slice(0, 300)
    log.debug(
      {
        requestId: request.id,
        method,
        path,
        status,
        tookMs: Math.round(tookMs),
        principal,
      },
      writableFinished ? 'answered' : 'the client went away',
    )
  }

  app.addHook('onSend', async (_, reply) => {
    if (closing.aborted) reply.header('connection', 'close')
  })

  return {
    waiting: () => counts.waiting,
    idle: (ms) =>
      new Promise((resolve) => {
        if (isIdle()) return resolve()
        const timer = setTimeout(resolve, ms)
        whenIdle = () => {
          clearTimeout(timer)
          resolve()
        }
      }),
  }
}

/** What log and metrics say of a request whose client went away before it was answered. */
const statusOfGone = 499

const rateWindowSeconds = 10

/** A rate for each principal, so that one that runs wild does not keep the others out; a route may have its own. */
async function addRateLimit(app: App, limits: Limits): Promise<void> {
  await app.register(rateLimit, {
    global: limits.ratePerSecond > 0,
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
