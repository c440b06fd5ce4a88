import { catalogue } from './error-catalogue.js'

/** Every code a Holdfast call can answer with. */
export type ErrorCode = keyof typeof catalogue

/** What the catalogue says of a code: the HTTP status it maps to, its cause and the caller's next step. */
export interface ErrorEntry {
  readonly status: number
  readonly cause: string
  readonly next: string
}

/** The catalogue, frozen. */
export const errorCatalogue: Readonly<Record<ErrorCode, ErrorEntry>> = catalogue

/** Says whether a word is a code of the catalogue. */
export function isErrorCode(word: string): word is ErrorCode {
  return Object.hasOwn(catalogue, word)
}

/**
 * The one error type of the public API. `code` is from the catalogue, `message` starts with it and states
 * the cause and the current value, `next` is what to do about it.
 */
export class HoldfastError extends Error {
  override readonly name = 'HoldfastError'
  readonly code: ErrorCode
  readonly next: string
  /** The value that was given, or that stands, where the error is about one. */
  readonly current: unknown

  constructor(
    code: ErrorCode,
    detail?: string,
    options?: { cause?: unknown; next?: string; current?: unknown },
  ) {
    const entry = catalogue[code]
    super(
      `${code} ${detail ?? entry.cause}`,
      options?.cause === undefined ? undefined : { cause: options.cause },
    )
    this.code = code
    this.next = options?.next ?? entry.next
    this.current = options?.current
  }
}

/** True when `error` is a HoldfastError with one of the given codes (any code when none is given). */
export function isHoldfastError(error: unknown, ...codes: ErrorCode[]): error is HoldfastError {
  return error instanceof HoldfastError && (codes.length === 0 || codes.includes(error.code))
}

/** Errors of the store, whatever was called: it is away, answers too late, or its replicas do. Another call would fare alike. */
export function isStoreAway(error: unknown): boolean {
  return isHoldfastError(error, 'STORE_UNAVAILABLE', 'DEADLINE_EXCEEDED', 'NOT_REPLICATED')
}

/** Errors that say nothing about the call itself: the same call may be made again, and may be answered then. */
export function isRepeatable(error: unknown): error is HoldfastError {
  return (
    isStoreAway(error) ||
    isHoldfastError(
      error,
      'NOT_ATTESTED',
      'HUB_UNREACHABLE',
      'OVERLOADED',
      'SHUTTING_DOWN',
      'RATE_LIMITED',
      'INTERNAL',
    )
  )
}
