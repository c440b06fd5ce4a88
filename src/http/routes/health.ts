import { z } from 'zod'
import { readyReply } from '../../contract/wire.js'
import type { Attesting } from '../../hub/attestation.js'
import { cachedFor } from '../../hub/cached.js'
import { readSweeps } from '../../hub/sweeps.js'
import { access } from '../access.js'
import type { Metrics } from '../metrics.js'
import type { Pulse } from '../pulse.js'
import type { Watch } from '../watch.js'
import type { OverviewParts } from './overview.js'
import { type App, replies } from './parts.js'

export interface HealthParts extends OverviewParts {
  readonly metrics: Metrics
  readonly pulse: Pulse
  readonly durability: Watch
  readonly attesting: Attesting
  readonly sweeping: Watch
  /** Requests that wait now. */
  waiting(): number
}

const pulseStaleMs = 5000
const tailStaleMs = 10_000
/** Five looks each. */
const durabilityStaleMs = 10_000
const sweepsStaleMs = 25_000
/** The sweeps are read for the page this often at most. */
const readingEveryMs = 2000

/** Health and metrics. */
export function addHealthRoutes(app: App, parts: HealthParts): void {
  app.get(
    '/livez',
    {
      config: { access: access.public },
      schema: {
        operationId: 'getLiveness',
        summary: 'This process answers',
        tags: ['health'],
        response: { 200: textAnswer('`ok`') },
      },
    },
    async (_, reply) => reply.type('text/plain').send('ok\n'),
  )
  app.get(
    '/readyz',
    {
      config: { access: access.public },
      schema: {
        operationId: 'getReadiness',
        summary: 'Whether work should come here: the record is right, and every loop succeeded lately',
        tags: ['health'],
        response: {
          200: readyReply.describe('ready'),
          503: readyReply.describe('not ready: the checks say why'),
        },
      },
    },
    async (_, reply) => {
      const answer = readiness(parts)
      return reply.code(answer.ready ? 200 : 503).send(answer)
    },
  )
  addMetrics(app, parts)
}

function textAnswer(description: string) {
  return { description, content: { 'text/plain': { schema: z.string() } } }
}

/** Whether work should come to a hub, and what says no. */
export type Readiness = z.input<typeof readyReply>

export function readiness({ pulse, tail, durability, attesting, sweeping, closing }: HealthParts): Readiness {
  const recordAge = Math.round(pulse.ageMs())
  const tailAge = tail.ageMs()
  const why = pulse.trouble()
  const attested = attesting.trouble()
  const checks = {
    record: { ok: recordAge < pulseStaleMs && why === undefined, ageMs: recordAge, ...(why && { why }) },
    log_tail: { ok: tailAge < tailStaleMs, ...(Number.isFinite(tailAge) && { ageMs: Math.round(tailAge) }) },
    durability: watched(durability, durabilityStaleMs),
    attestation: attested === undefined ? { ok: true } : { ok: false, why: attested },
    sweeps: watched(sweeping, sweepsStaleMs),
    serving: closing.aborted ? { ok: false, why: 'the hub is shutting down' } : { ok: true },
  }
  return { ready: Object.values(checks).every(({ ok }) => ok), checks }
}

function watched(watch: Watch, staleMs: number): { ok: boolean; ageMs?: number; why?: string } {
  const ageMs = watch.ageMs()
  const isStale = ageMs >= staleMs
  const why = watch.trouble() ?? (isStale ? 'it could not be looked at' : undefined)
  return {
    ok: why === undefined,
    ...(Number.isFinite(ageMs) && { ageMs: Math.round(ageMs) }),
    ...(why && { why }),
  }
}

/** The metrics of a hub as text; the record is read for it now and then. */
export function metricsPage(parts: HealthParts): () => Promise<string> {
  const { hub, metrics, reader, keys, pulse, tail, waiting } = parts
  const sweeps = cachedFor(readingEveryMs, () => readSweeps(reader, keys))
  return async () => {
    try {
      metrics.take(await hub.overview(), await sweeps())
    } catch {
      metrics.readingFailed()
    }
    metrics.setLoopAge('record', pulse.ageMs())
    if (Number.isFinite(tail.ageMs())) metrics.setLoopAge('log_tail', tail.ageMs())
    metrics.setReady(readiness(parts).checks)
    metrics.setWaiting(waiting())
    return await metrics.registry.metrics()
  }
}

function addMetrics(app: App, parts: HealthParts): void {
  const page = metricsPage(parts)
  app.get(
    '/metrics',
    {
      config: { access: access.readers },
      schema: {
        operationId: 'getMetrics',
        summary: 'Metrics in the text format of Prometheus',
        tags: ['health'],
        response: replies({ 200: textAnswer('every metric; docs/metrics.md says what they mean') }),
      },
    },
    async (_, reply) => reply.type(parts.metrics.registry.contentType).send(await page()),
  )
}
