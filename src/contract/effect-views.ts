import { z } from 'zod'
import { components } from './components.js'
import { effectStatuses } from './effects.js'
import { outcomeKinds } from './outcomes.js'
import { count, timeMs, type View } from './view-parts.js'

// What readers of the record are shown of effects, in the SDK and over HTTP alike.

/** An effect as recorded; its bodies go with the retention, the rest stays. */
export const effectViewSchema = z
  .object({
    id: z.string(),
    type: z.string(),
    payloadHash: z.string(),
    status: z.enum(effectStatuses),
    executor: z.string(),
    epoch: count,
    claimedAt: timeMs,
    startedAt: timeMs,
    settledAt: timeMs.optional(),
    outcome: z.enum(outcomeKinds).optional(),
    result: z.string().optional().describe('JSON text, byte for byte as it was settled'),
    errorCode: z.string().optional(),
    errorJson: z.string().optional(),
    unknownAt: timeMs.optional(),
    unknownReason: z.string().optional(),
    takeovers: count,
    takenFrom: z.string().optional().describe('`<executor>#<epoch>` of the last take-over'),
    basis: z.string().optional(),
    lateReports: count.optional(),
    resolvedBy: z.string().optional(),
    evidence: z.string().optional(),
    bodiesPrunedAt: timeMs.optional(),
  })
  .register(components, { id: 'Effect' })
/** An effect as recorded; its bodies go with the retention, the rest stays. @interface */
export type EffectView = View<typeof effectViewSchema>
