import { effectViewSchema } from '../../contract/effect-views.js'
import type { EffectRefused } from '../../contract/effects.js'
import type { JsonSource } from '../../contract/json-source.js'
import {
  effectAnswer,
  effectClaimBody,
  effectClaimedReply,
  effectParams,
  effectSettleBody,
  effectSettledReply,
  effectsQuery,
  effectsReply,
  effectTakeOverBody,
  resolveBody,
} from '../../contract/wire-effects.js'
import { access } from '../access.js'
import { problem } from '../problem.js'
import { type App, type RouteParts, replies } from './parts.js'
import { outcomeOf } from './reports.js'

/** Effects: non-idempotent actions outside deliveries, each at most once. */
export function addEffectRoutes(app: App, parts: RouteParts): void {
  addReads(app, parts)
  addClaims(app, parts)
  addSettlements(app, parts)
}

function addReads(app: App, { hub }: RouteParts): void {
  app.get(
    '/v1/effects',
    {
      config: { access: access.readers },
      schema: {
        operationId: 'listEffects',
        summary: 'Effects by when they were first claimed, or those that are executing',
        tags: ['effects'],
        querystring: effectsQuery,
        response: replies({ 200: effectsReply }),
      },
    },
    async (request) => {
      const { executing, ...page } = request.query
      const { entries, cursor } = await hub.effectPage({ ...page, executing: executing === 'true' })
      return { effects: entries, cursor }
    },
  )
  app.get(
    '/v1/effects/:id',
    {
      config: { access: access.readers },
      schema: {
        operationId: 'getEffect',
        summary: 'An effect as recorded',
        tags: ['effects'],
        params: effectParams,
        response: replies({ 200: effectViewSchema }),
      },
    },
    async (request) => await hub.effect(request.params.id),
  )
}

function addClaims(app: App, { hub }: RouteParts): void {
  app.post(
    '/v1/effects/:id/claim',
    {
      config: { access: access.effects },
      schema: {
        operationId: 'claimEffect',
        summary: 'Insert or lose: one executor may run an effect, everybody else is told the record',
        tags: ['effects'],
        params: effectParams,
        body: effectClaimBody,
        response: replies({ 200: effectAnswer }),
      },
    },
    async (request) => await hub.claimEffect(request.params.id, request.body),
  )
  app.post(
    '/v1/effects/:id/take-over',
    {
      config: { access: access.effects },
      schema: {
        operationId: 'takeOverEffect',
        summary: 'From an executor that may be gone, on a stated basis: compare-and-set on epoch and start',
        tags: ['effects'],
        params: effectParams,
        body: effectTakeOverBody,
        response: replies({ 200: effectClaimedReply }),
      },
    },
    async (request) => {
      const answer = await hub.takeOverEffect(request.params.id, request.body)
      if (answer.kind === 'refused') throw lost(answer)
      return answer
    },
  )
}

function addSettlements(app: App, { hub }: RouteParts): void {
  app.post(
    '/v1/effects/:id/settle',
    {
      config: { access: access.effects },
      schema: {
        operationId: 'settleEffect',
        summary: 'How it went: only the grant that holds the row settles it, once',
        tags: ['effects'],
        params: effectParams,
        body: effectSettleBody,
        response: replies({ 200: effectSettledReply }),
      },
    },
    async (request) => {
      const { outcome, ...settlement } = request.body
      const exact = exactOf(request.source)
      const answer = await hub.settleEffect(request.params.id, {
        ...settlement,
        outcome: outcomeOf(outcome, exact),
      })
      if (answer.kind === 'refused') throw lost(answer)
      return answer
    },
  )
  app.post(
    '/v1/effects/:id/resolve',
    {
      config: { access: access.operators },
      schema: {
        operationId: 'resolveEffect',
        summary: "An operator's word, with evidence, on an outcome that nobody else can know; irreversible",
        tags: ['effects'],
        params: effectParams,
        body: resolveBody,
        response: replies({ 200: effectSettledReply }),
      },
    },
    async (request) => {
      const { as, evidence, force } = request.body
      const result = request.source?.textAt(['result'])?.toString('utf8')
      return await hub.resolveEffect(request.params.id, { as, evidence, force, result }, request.caller.name)
    },
  )
}

function exactOf(source: JsonSource | undefined) {
  return (member: string) => source?.textAt(['outcome', member])?.toString('utf8')
}

/** Whoever lost is told the row as it stands. */
function lost({ code, detail, status, epoch, startedAt, executor, ageMs }: EffectRefused) {
  return problem(code, detail, { current: { status, epoch, startedAt, executor, ageMs } })
}
