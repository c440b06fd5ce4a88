import { z } from 'zod'
import { components } from './components.js'
import { effectViewSchema } from './effect-views.js'
import { effectBases, effectStatuses } from './effects.js'
import { outcomeKinds } from './outcomes.js'
import { count } from './view-parts.js'
import { anyJson, attemptId, cursor, id, pageMembers, text, wireOutcome } from './wire-parts.js'

// Bodies and answers of effects and of operators' resolutions, over HTTP.

const payloadHash = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 digest in lower-case hex')
  .describe('SHA-256 of what the caller means, lower-case hex')
const grant = id
  .refine((word) => !word.includes(' '), 'must hold no blanks')
  .describe('a nonce, minted for this one try')
const executor = id.describe('who executes: a stable name, the same after a restart')
const timeLimitMs = z.int().min(1).optional().describe('nobody takes the effect over earlier')

export const attemptParams = z.object({ id: attemptId })

export const effectParams = z.object({ id })
export const effectsQuery = z.strictObject({
  executing: z
    .enum(['true', 'false'])
    .optional()
    .describe('only those that are executing, the longest first'),
  ...pageMembers,
})
export const effectsReply = z.object({ effects: z.array(effectViewSchema), cursor: cursor.optional() })
export const effectClaimBody = z
  .strictObject({ type: id.describe('what kind of action it is'), payloadHash, executor, grant, timeLimitMs })
  .register(components, { id: 'EffectClaim' })
export const effectTakeOverBody = z
  .strictObject({
    payloadHash,
    executor,
    grant,
    basis: z.enum(effectBases).describe('probe: the target can be asked; idempotent: twice is as once'),
    epoch: count.describe('of the row as it was last seen'),
    startedAt: z.int().nonnegative().describe('of the row as it was last seen'),
    timeLimitMs,
  })
  .register(components, { id: 'EffectTakeOver' })
const open = {
  epoch: count,
  startedAt: z.int().describe('Unix ms by the clock of Redis'),
}
export const effectClaimedReply = z
  .object({ kind: z.literal('claimed'), ...open })
  .register(components, { id: 'EffectClaimed' })
export const effectAnswer = z
  .discriminatedUnion('kind', [
    effectClaimedReply,
    z.object({
      kind: z.literal('result'),
      result: z
        .string()
        .describe(
          'JSON text, byte for byte as it was settled; `{"omitted":"<why>"}` once retention took it away',
        ),
      epoch: count,
    }),
    z.object({
      kind: z.literal('terminal'),
      errorCode: z.string(),
      errorJson: z.string().optional(),
      epoch: count,
    }),
    z.object({
      kind: z.literal('outcome_unknown'),
      ...open,
      executor: z.string(),
      ageMs: z.int().describe('since it was claimed'),
    }),
  ])
  .register(components, { id: 'EffectAnswer' })
export const effectSettledReply = z
  .object({
    kind: z.literal('settled'),
    outcome: z.enum(outcomeKinds).describe('as recorded'),
    status: z.enum(effectStatuses),
    epoch: count,
  })
  .register(components, { id: 'EffectSettled' })
export const effectSettleBody = z
  .strictObject({ executor, grant, epoch: count.describe('as the claim answered it'), outcome: wireOutcome })
  .register(components, { id: 'EffectSettlement' })
export const resolveBody = z
  .strictObject({
    as: z.enum(['result', 'terminal', 'not_sent']),
    evidence: text.describe('how it is known'),
    force: z.boolean().optional().describe('also while its executor may live'),
    result: anyJson.optional(),
  })
  .register(components, { id: 'Resolution' })
