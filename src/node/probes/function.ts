import { isTypedOutcome, type Outcome, type ProbeAnswer, printableCode } from '../../contract/outcomes.js'
import type { Attempt, ProbeFunction, Prober } from '../executor.js'
import { describe, toJson } from '../executors/function.js'

/** Asks by calling a function in this process. What it throws, and what it answers otherwise, is `unknown`. */
export function functionProbe(probe: ProbeFunction): Prober {
  return { ask: (attempt) => ask(probe, attempt) }
}

async function ask(probe: ProbeFunction, attempt: Attempt): Promise<Outcome> {
  try {
    return probed(await probe(attempt))
  } catch (error) {
    return unknown('probe_failed', describe(error))
  }
}

/** A probe's answer as an outcome of the attempt; anything that is none proves nothing. */
function probed(answer: ProbeAnswer): Outcome {
  switch (answer.kind) {
    case 'result':
      return { kind: 'result', result: toJson(answer.value) }
    case 'terminal': {
      if (!isTypedOutcome(answer)) return unknown('probe_answer', { why: 'a terminal is made by terminal()' })
      const { kind, errorJson } = answer
      const errorCode = printableCode(answer.errorCode)
      return errorJson === undefined ? { kind, errorCode } : { kind, errorCode, errorJson }
    }
    case 'not_executed':
      return notExecuted
    case 'unknown':
      return unknown('probe_unknown')
    default:
      return unknown('probe_answer', { why: 'it answered none of result, terminal, not_executed, unknown' })
  }
}

/** The target asserts that the attempt has not executed and will not. */
export const notExecuted: Outcome = { kind: 'not_sent', errorCode: 'probe_not_executed' }

export function unknown(errorCode: string, detail?: object): Outcome {
  return {
    kind: 'outcome_unknown',
    errorCode,
    ...(detail === undefined ? {} : { errorJson: JSON.stringify(detail) }),
  }
}
