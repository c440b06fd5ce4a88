import type { EffectRecord, EffectUnknown } from '../contract/effects.js'
import type { NotSent, Outcome, Terminal } from '../contract/outcomes.js'
import type { EffectOutcome } from './effects.js'

/** What the record has of an effect that was settled before. */
export function recorded(record: Exclude<EffectRecord, EffectUnknown>): EffectOutcome {
  if (record.kind === 'result') {
    return { kind: 'result', value: JSON.parse(record.result) as unknown, replayed: true }
  }
  return { kind: 'terminal', errorCode: record.errorCode, errorJson: record.errorJson }
}

/** Without the mark that proves where it was made: what is sent. */
export function bare({ kind, errorCode, errorJson }: NotSent | Terminal): Outcome {
  return { kind, errorCode, ...(errorJson === undefined ? {} : { errorJson }) }
}

/** It did execute, whatever its value looks like: one that JSON cannot state is left out, and says so. */
export function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'null'
  } catch (error) {
    return JSON.stringify({ omitted: String(error).slice(0, 500) })
  }
}

/** What happened is recorded even where its body is over the limit: the body is left out, and says so. */
export function shortened(outcome: Outcome, limit: string): Outcome {
  const body = JSON.stringify({ omitted: `the body was over the limit (${limit})` })
  return outcome.kind === 'result' ? { kind: 'result', result: body } : { ...outcome, errorJson: body }
}

/** Nobody can tell, for this reason. */
export function unknownBecause(
  errorCode: string,
  error: unknown,
): Extract<Outcome, { kind: 'outcome_unknown' }> {
  const message = error instanceof Error ? error.message : String(error)
  return {
    kind: 'outcome_unknown',
    errorCode,
    errorJson: JSON.stringify({ message: message.slice(0, 1000) }),
  }
}
