import type { EffectRecord, EffectUnknown } from '../contract/effects.js'
import {
  isTypedOutcome,
  type NotSent,
  type Outcome,
  printableCode,
  type Terminal,
} from '../contract/outcomes.js'
import type { EffectOutcome } from './effects.js'

/** What the record has of an effect that was settled before. */
export function recorded(record: Exclude<EffectRecord, EffectUnknown>): EffectOutcome {
  if (record.kind === 'result') {
    return { kind: 'result', value: parsed(record.result), replayed: true }
  }
  return { kind: 'terminal', errorCode: record.errorCode, errorJson: record.errorJson }
}

/** A result that another program recorded as no JSON text is left out, and says so: that it happened is known. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return { omitted: 'the recorded result is no JSON text' }
  }
}

/** Without the mark that proves where it was made, its word in form: what is sent. */
function bare({ kind, errorCode, errorJson }: NotSent | Terminal): Outcome {
  return { kind, errorCode: printableCode(errorCode), ...(errorJson === undefined ? {} : { errorJson }) }
}

/** What `execute` answered: its proof, or else its result. */
export function executed(value: unknown): Outcome {
  return isTypedOutcome(value) ? bare(value) : { kind: 'result', result: jsonOf(value) }
}

/** What a probe knows, in form. What is none of its four answers proves nothing. */
export function probed(answer: unknown): Outcome | 'not_executed' {
  if (isTypedOutcome(answer)) return answer.kind === 'terminal' ? bare(answer) : noAnswer
  if (answer === undefined || answer === null) return nothingKnown
  if (typeof answer !== 'object' || !('kind' in answer)) return noAnswer
  if (answer.kind === 'not_executed') return 'not_executed'
  if (answer.kind === 'result' && 'value' in answer) return { kind: 'result', result: jsonOf(answer.value) }
  return answer.kind === 'unknown' ? nothingKnown : noAnswer
}

const nothingKnown: Outcome = { kind: 'outcome_unknown', errorCode: 'probe_unknown' }
const noAnswer: Outcome = {
  kind: 'outcome_unknown',
  errorCode: 'probe_answer',
  errorJson: JSON.stringify({ why: 'it answered none of result, terminal(), not_executed, unknown' }),
}

/** It did execute, whatever its value looks like: one that JSON cannot state is left out, and says so. */
function jsonOf(value: unknown): string {
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
