import { parseJsonSource } from '../contract/json-source.js'
import type { Outcome } from '../contract/outcomes.js'

/** An outcome as JSON text: its own JSON stands in it byte for byte. */
export function outcomeText(outcome: Outcome): string {
  if (outcome.kind === 'result') return `{"kind":"result","result":${jsonText(outcome.result)}}`
  const { kind, errorCode, errorJson = '' } = outcome
  const head = JSON.stringify({ kind, errorCode })
  return errorJson === '' ? head : `${head.slice(0, -1)},"errorJson":${jsonText(errorJson)}}`
}

/** A hub reads bodies 64 deep, and a body stands four deep in the body of its report. */
const deepest = 60

/**
 * Text that a hub would not take as JSON travels as a string: no outcome is lost for its form, nor are those
 * that are reported with it.
 */
function jsonText(text: string): string {
  try {
    parseJsonSource(Buffer.from(text), { maxDepth: deepest })
    return text
  } catch {
    return JSON.stringify(text)
  }
}
