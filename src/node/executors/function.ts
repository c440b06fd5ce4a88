import {
  isReturnedError,
  isTypedOutcome,
  type NotSent,
  type Outcome,
  printableCode,
  type Terminal,
} from '../../contract/outcomes.js'
import type { Attempt, ExecuteFunction, Executor } from '../executor.js'

/** Limits of {@link functionExecutor}. */
export interface FunctionExecutorOptions {
  /** Largest JSON text of a result or of an outcome's particulars, in bytes; what the hub takes (or 262144) when absent. */
  readonly maxResultBytes?: number
}

const defaultMaxResultBytes = 262_144
const maxErrorCodeChars = 255
const maxMessageChars = 2048

/**
 * Runs attempts by calling a handler in this process (contract section 4).
 *
 * - It returns `notSent(…)` or `terminal(…)`: that outcome.
 * - It returns anything else: `result`, as JSON; `undefined` becomes `null`. A value that JSON cannot state,
 *   or that is over `maxResultBytes`, did execute all the same: its result is `{"omitted":"<why>"}`.
 * - It throws or rejects, whatever with: `outcome_unknown`, under the error's name. An error that it returns counts as thrown.
 *
 * The handler must heed `attempt.signal` itself: nothing can stop a function from outside.
 */
export function functionExecutor(execute: ExecuteFunction, options: FunctionExecutorOptions = {}): Executor {
  return {
    run: (attempt, hooks) =>
      call(execute, attempt, options.maxResultBytes ?? hooks.maxResultBytes ?? defaultMaxResultBytes),
  }
}

async function call(execute: ExecuteFunction, attempt: Attempt, maxBytes: number): Promise<Outcome> {
  try {
    const value = await execute(attempt)
    if (isReturnedError(value)) return unknownOutcome(value)
    return typedOutcome(value, maxBytes) ?? { kind: 'result', result: bounded(toJson(value), maxBytes) }
  } catch (error) {
    return unknownOutcome(error)
  }
}

function typedOutcome(value: unknown, maxBytes: number): Outcome | undefined {
  if (!isTypedOutcome(value)) return undefined
  if (value.kind === 'not_sent') return { kind: 'not_sent', ...particulars(value, maxBytes) }
  if (value.kind === 'terminal') return { kind: 'terminal', ...particulars(value, maxBytes) }
  return undefined
}

function particulars(
  { errorCode, errorJson }: NotSent | Terminal,
  maxBytes: number,
): { errorCode: string; errorJson?: string } {
  const code = { errorCode: printableCode(errorCode) }
  return errorJson === undefined ? code : { ...code, errorJson: bounded(errorJson, maxBytes) }
}

/** A value as JSON; one that JSON cannot state was made all the same, and says so. */
export function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'null'
  } catch (error) {
    return omitted(`result has no JSON form: ${describe(error).message}`)
  }
}

/** The text, or why it is left out. */
export function bounded(text: string, maxBytes: number): string {
  const bytes = Buffer.byteLength(text)
  return bytes <= maxBytes ? text : omitted(`result of ${bytes} bytes is over the limit of ${maxBytes}`)
}

/** A body that is left out, and says so. */
export function omitted(why: string): string {
  return JSON.stringify({ omitted: why })
}

function unknownOutcome(error: unknown): Outcome {
  const description = describe(error)
  return {
    kind: 'outcome_unknown',
    errorCode: printableCode(description.name),
    errorJson: JSON.stringify(description),
  }
}

interface ErrorDescription {
  readonly message: string
  readonly name?: string
  readonly code?: string | number
}

// What is thrown may be anything, with getters that throw in turn.
export function describe(error: unknown): ErrorDescription {
  try {
    if (typeof error !== 'object' || error === null) return { message: cut(String(error), maxMessageChars) }
    const { message, name, code } = error as { message?: unknown; name?: unknown; code?: unknown }
    return {
      message: cut(typeof message === 'string' ? message : String(error), maxMessageChars),
      ...(typeof name === 'string' && { name: cut(name, maxErrorCodeChars) }),
      ...(typeof code === 'string' && { code: cut(code, maxErrorCodeChars) }),
      ...(typeof code === 'number' && { code }),
    }
  } catch {
    return { message: 'what was thrown cannot be read' }
  }
}

/** The first characters of a text, no surrogate pair split. */
export function cut(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : text.slice(0, maxChars).replace(/[\uD800-\uDBFF]$/, '')
}
