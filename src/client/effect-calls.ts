import { z } from 'zod'
import { effectViewSchema } from '../contract/effect-views.js'
import { type EffectRefused, effectStatuses } from '../contract/effects.js'
import { HoldfastError } from '../contract/errors.js'
import type { HubCalls } from '../contract/hub.js'
import {
  effectAnswer,
  effectClaimedReply,
  effectSettledReply,
  effectsReply,
} from '../contract/wire-effects.js'
import type { Calls } from './calls.js'
import { outcomeText } from './outcome-text.js'
import { part, query } from './paths.js'

type EffectPart = Pick<
  HubCalls,
  'claimEffect' | 'takeOverEffect' | 'settleEffect' | 'effect' | 'effectPage' | 'resolveEffect'
>

/** The effect calls over HTTP. Claims, take-overs and settlements are safe to repeat: each names its grant. */
export function effectCalls(calls: Calls, headers: Readonly<Record<string, string>>): EffectPart {
  const path = (id: string, verb: string) => `/v1/effects/${part(id)}/${verb}`
  return {
    claimEffect: async (id, claim) =>
      (await calls.repeat({ method: 'POST', path: path(id, 'claim'), body: claim, reply: effectAnswer }))
        .value,
    takeOverEffect: async (id, body) => {
      const call = { method: 'POST', path: path(id, 'take-over'), body, reply: effectClaimedReply } as const
      return orRefused(async () => (await calls.repeat(call)).value)
    },
    settleEffect: async (id, { executor, grant, epoch, outcome }) => {
      const head = JSON.stringify({ executor, grant, epoch }).slice(0, -1)
      const body = `${head},"outcome":${outcomeText(outcome)}}`
      const call = { method: 'POST', path: path(id, 'settle'), body, reply: effectSettledReply } as const
      return orRefused(async () => (await calls.repeat(call)).value)
    },
    effect: async (id) =>
      (await calls.repeat({ method: 'GET', path: `/v1/effects/${part(id)}`, reply: effectViewSchema })).value,
    effectPage: async ({ cursor, limit, executing } = {}) => {
      const asked = query({
        cursor,
        limit,
        executing: executing === undefined ? undefined : String(executing),
      })
      const { value } = await calls.repeat({
        method: 'GET',
        path: `/v1/effects${asked}`,
        reply: effectsReply,
      })
      return { entries: value.effects, cursor: value.cursor }
    },
    resolveEffect: async (id, { as, evidence, force, result }) => {
      const head = JSON.stringify({ as, evidence, force })
      const body = result === undefined ? head : `${head.slice(0, -1)},"result":${result}}`
      const call = {
        method: 'POST',
        path: path(id, 'resolve'),
        headers,
        body,
        reply: effectSettledReply,
      } as const
      return (await calls.call(call)).value
    },
  }
}

const rowShape = z.object({
  status: z.enum(effectStatuses),
  epoch: z.number(),
  startedAt: z.number(),
  executor: z.string(),
  ageMs: z.number(),
})

/** Whoever lost is told the row as it stands: an answer, not an error. */
async function orRefused<Value>(call: () => Promise<Value>): Promise<Value | EffectRefused> {
  try {
    return await call()
  } catch (error) {
    const row = error instanceof HoldfastError ? rowShape.safeParse(error.current) : undefined
    if (!(error instanceof HoldfastError) || row?.success !== true) throw error
    const detail = error.message.slice(error.code.length + 1)
    return { kind: 'refused', code: error.code, detail, ...row.data }
  }
}
