import { type Outcome, printableCode } from '../contract/outcomes.js'
import { bounded, describe, omitted } from './executors/function.js'

/** Who answered, as the code says it where the answer is no outcome. */
export type Answerer = 'executor_answer' | 'probe_answer'

/**
 * What an executor or a prober answered, in the form of a report: once, where it enters, before anything of it is
 * durable. A code is made printable; a body that is no JSON text, or is over `maxBytes`, is `{"omitted":"<why>"}`, for
 * what happened is known all the same. What is none of the four outcomes proves nothing: `outcome_unknown`, under the
 * code of who answered.
 */
export function inForm(answer: unknown, answerer: Answerer, maxBytes: number | undefined): Outcome {
  try {
    return (
      outcomeOf(answer, maxBytes) ??
      unknownAnswer(answerer, `an outcome has one of four kinds: ${formOf(answer)}`)
    )
  } catch (error) {
    return unknownAnswer(answerer, `what was answered cannot be read: ${describe(error).message}`)
  }
}

function outcomeOf(answer: unknown, maxBytes = Number.POSITIVE_INFINITY): Outcome | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined
  const { kind, result, errorCode, errorJson } = answer as Partial<Record<string, unknown>>
  switch (kind) {
    case 'result':
      return { kind, result: bodyOf('result', result, maxBytes) }
    case 'terminal':
    case 'not_sent':
    case 'outcome_unknown': {
      const code = printableCode(typeof errorCode === 'string' ? errorCode : undefined)
      if (errorJson === undefined || errorJson === '') return { kind, errorCode: code }
      return { kind, errorCode: code, errorJson: bodyOf('errorJson', errorJson, maxBytes) }
    }
    default:
      return undefined
  }
}

function bodyOf(member: string, text: unknown, maxBytes: number): string {
  if (typeof text !== 'string') return omitted(`${member} is to be JSON text, and was ${typeName(text)}`)
  return isJson(text) ? bounded(text, maxBytes) : omitted(`${member} was no JSON text`)
}

/** Half a surrogate pair would be another text by the time it is stored. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return text.isWellFormed()
  } catch {
    return false
  }
}

function unknownAnswer(errorCode: Answerer, why: string): Outcome {
  return { kind: 'outcome_unknown', errorCode, errorJson: JSON.stringify({ why }) }
}

function formOf(answer: unknown): string {
  if (typeof answer !== 'object' || answer === null) return `it was ${typeName(answer)}`
  const { kind } = answer as { kind?: unknown }
  return typeof kind === 'string' ? `"${printableCode(kind)}" is none` : `its kind was ${typeName(kind)}`
}

function typeName(value: unknown): string {
  if (value === undefined || value === null) return String(value)
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
