import type { ErrorCode } from './errors.js'
import type { Outcome, OutcomeKind } from './outcomes.js'

/** Statuses of an effect (contract section 4). `free`: proven not executed, so it may be tried again. */
export const effectStatuses = ['executing', 'done', 'terminal', 'free'] as const
/** `executing`, `done`, `terminal` or `free`: where an effect is. */
export type EffectStatus = (typeof effectStatuses)[number]

/** On what an effect may be taken over: somebody can be asked what became of it, or doing it twice is harmless. */
export const effectBases = ['probe', 'idempotent'] as const
/** `probe` or `idempotent`. */
export type EffectBasis = (typeof effectBases)[number]

/** Who claims an effect, and for what. */
export interface EffectClaim {
  readonly type: string
  /** SHA-256 of what the caller means, lower-case hex (see `hashPayload`). */
  readonly payloadHash: string
  /** Who executes: a stable name, the same after a restart. */
  readonly executor: string
  /** A nonce minted for this one try. */
  readonly grant: string
  /** Milliseconds after which the executor gives up: nobody takes the effect over earlier. */
  readonly timeLimitMs?: number | undefined
}

/** Who takes an effect over, on what basis, and the row as it was seen. */
export interface EffectTakeOver {
  readonly payloadHash: string
  readonly executor: string
  readonly grant: string
  readonly basis: EffectBasis
  /** Of the row as it was last seen: compare-and-set. */
  readonly epoch: number
  readonly startedAt: number
  readonly timeLimitMs?: number | undefined
}

/** How an effect went, said by whoever holds its grant. */
export interface EffectSettlement {
  readonly executor: string
  readonly grant: string
  readonly epoch: number
  readonly outcome: Outcome
}

/** The grant is the caller's: it may execute, or settle. */
export interface EffectClaimed {
  readonly kind: 'claimed'
  readonly epoch: number
  readonly startedAt: number
}

/** What is recorded of an effect that somebody else claimed. A result that retention took away is `{"omitted":"<why>"}`. */
export type EffectRecord =
  | { readonly kind: 'result'; readonly result: string; readonly epoch: number }
  | {
      readonly kind: 'terminal'
      readonly errorCode: string
      readonly errorJson?: string | undefined
      readonly epoch: number
    }
  | EffectUnknown

/** An effect of which nobody can tell whether it was executed. */
export interface EffectUnknown {
  readonly kind: 'outcome_unknown'
  readonly epoch: number
  /** Unix ms by the clock of Redis. */
  readonly startedAt: number
  readonly executor: string
  readonly ageMs: number
}

/** A call that lost: the row as it stands now. */
export interface EffectRefused {
  readonly kind: 'refused'
  readonly code: ErrorCode
  readonly detail: string
  readonly status: EffectStatus
  readonly epoch: number
  readonly startedAt: number
  readonly executor: string
  readonly ageMs: number
}

/** An effect after its settlement. */
export interface EffectSettled {
  readonly kind: 'settled'
  /** As recorded: a `not_sent` that could not free the row is `outcome_unknown`. */
  readonly outcome: OutcomeKind
  readonly status: EffectStatus
  readonly epoch: number
}

/** The effect calls of a hub, over the record or over HTTP alike. All of them may be repeated. */
export interface EffectCalls {
  /** Insert or lose. @throws PAYLOAD_MISMATCH */
  claimEffect(id: string, claim: EffectClaim): Promise<EffectClaimed | EffectRecord>
  /** Compare-and-set on epoch and start. @throws PAYLOAD_MISMATCH, EFFECT_NOT_FOUND */
  takeOverEffect(id: string, takeOver: EffectTakeOver): Promise<EffectClaimed | EffectRefused>
  /** Conditional on the grant. @throws EFFECT_NOT_FOUND, RESULT_TOO_LARGE */
  settleEffect(id: string, settlement: EffectSettlement): Promise<EffectSettled | EffectRefused>
}
