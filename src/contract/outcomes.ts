/**
 * The four outcomes of an attempt (contract section 4). They never collapse: a `result` happened, a
 * `terminal` will never succeed, a `not_sent` provably did not happen, and of an `outcome_unknown` nobody
 * can tell.
 */
export type Outcome = ResultOutcome | TerminalOutcome | NotSentOutcome | UnknownOutcome

/** It executed. `result` is JSON text, byte for byte as the executor made it. */
export interface ResultOutcome {
  readonly kind: 'result'
  readonly result: string
}

/** It will never succeed; redrive stops for good. */
export interface TerminalOutcome {
  readonly kind: 'terminal'
  readonly errorCode: string
  /** JSON text with particulars. */
  readonly errorJson?: string
}

/** Proof that nothing executed: it may be tried again. */
export interface NotSentOutcome {
  readonly kind: 'not_sent'
  readonly errorCode: string
  readonly errorJson?: string
}

/** It may or may not have executed. Shown in the unknown list until someone knows. */
export interface UnknownOutcome {
  readonly kind: 'outcome_unknown'
  readonly errorCode: string
  readonly errorJson?: string
}

export const outcomeKinds = ['result', 'terminal', 'not_sent', 'outcome_unknown'] as const
/** `result`, `terminal`, `not_sent` or `outcome_unknown`. */
export type OutcomeKind = (typeof outcomeKinds)[number]

/** Status of an attempt row. `outcome_unknown` is no status: the attempt stays `executing`, listed unknown. */
export const attemptStatuses = ['executing', 'done', 'terminal', 'not_sent'] as const
export type AttemptStatus = (typeof attemptStatuses)[number]

/** A proof of non-execution, made only by {@link notSent}. */
export interface NotSent extends NotSentOutcome {
  readonly [proof]: 'not_sent'
}

/** A final refusal, made only by {@link terminal}. */
export interface Terminal extends TerminalOutcome {
  readonly [proof]: 'terminal'
}

/** What a probe knows of something that was begun. `not_executed` asserts that it has not happened, and will not. */
export type ProbeAnswer =
  | { readonly kind: 'result'; readonly value: unknown }
  | Terminal
  | { readonly kind: 'not_executed' }
  | { readonly kind: 'unknown' }

const proof: unique symbol = Symbol.for('holdfast.outcome')

/**
 * What a handler returns when it can prove that nothing executed: nothing can have left, or the target said
 * so in a typed refusal. The node tries again with backoff, up to `max_redrive`.
 * @param reason a short word or sentence, printable
 */
export function notSent(reason: string, detail?: unknown): NotSent {
  return { kind: 'not_sent', errorCode: reason, ...errorJson(detail), [proof]: 'not_sent' }
}

/**
 * What a handler returns when the work will never succeed. Nothing is redriven after it.
 * @param code a stable word, such as `target_session_missing`
 */
export function terminal(code: string, detail?: unknown): Terminal {
  return { kind: 'terminal', errorCode: code, ...errorJson(detail), [proof]: 'terminal' }
}

const codeChars = 255

/** A word in the form of an errorCode: printable ASCII, 1 to 255 characters. What was proven counts, however it is called. */
export function printableCode(word: unknown): string {
  const code = (typeof word === 'string' ? word : word instanceof Error ? word.message : '')
    .slice(0, codeChars)
    .replace(/[^\x20-\x7e]/g, '?')
  return code.trim() === '' ? 'error' : code
}

/** Tells the value of {@link notSent} or {@link terminal} from a handler's own result. */
export function isTypedOutcome(value: unknown): value is NotSent | Terminal {
  return typeof value === 'object' && value !== null && proof in value
}

/**
 * An error that a handler returned instead of throwing it. It says that something failed, and not how far it came: it
 * counts as thrown (contract section 4, rule 8), and is never recorded as a result.
 */
export function isReturnedError(value: unknown): value is Error {
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]'
}

function errorJson(detail: unknown): { errorJson?: string } {
  if (detail === undefined) return {}
  try {
    return { errorJson: JSON.stringify(detail) ?? 'null' }
  } catch (error) {
    // A cycle or a BigInt must not turn what the handler proved into an exception, which proves nothing.
    return { errorJson: JSON.stringify({ omitted: String(error) }) }
  }
}
