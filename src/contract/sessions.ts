import { HoldfastError } from './errors.js'

/** States of a session (contract section 6); one never opened has none. */
export const sessionStates = ['open', 'closed', 'missing'] as const
/** `open`, `closed` or `missing`. */
export type SessionState = (typeof sessionStates)[number]

/** Why a session was closed. Which of them come back without an operator is fixed; for a crash the row decides. */
export const closeReasons = ['disable', 'removed', 'reload', 'restart', 'crash'] as const
/** `disable`, `removed`, `reload`, `restart` or `crash`: why a session was closed. */
export type CloseReason = (typeof closeReasons)[number]

/** Whether a session closed for this reason comes back only by an operator; undefined where the row decides. */
export function terminalOf(reason: CloseReason): boolean | undefined {
  if (reason === 'crash') return undefined
  return reason === 'disable' || reason === 'removed'
}

/** Where a session lives from its opening on. */
export interface SessionOpening {
  readonly host: string
  /** Its directory: a canonical absolute path, compared as a string. */
  readonly scope: string
  /** Crashes after which a crash is terminal; as it was when absent, 0 at first. */
  readonly restartBudget?: number | undefined
  readonly parent?: string | undefined
  /**
   * Said by an operator: opens one that was reported missing, and starts the count of crashes over where it was closed
   * for good. False when absent: what opens by itself, like a supervisor, never says it.
   */
  readonly asOperator?: boolean | undefined
}

/** What is stated of a session when it is closed. */
export interface SessionClosing {
  /** What opening returned: a delayed close of an earlier owner changes nothing. */
  readonly epoch: number
  readonly reason: CloseReason
  /** Nothing was under way any more. */
  readonly drained: boolean
  /** What was under way and was given up. */
  readonly abandoned: number
  /** "Will not come back without an operator": stated for every reason but a crash. */
  readonly terminal?: boolean | undefined
}

/**
 * Whether a text can be a scope: an absolute path (POSIX, or Windows with its drive) of at most 1024 bytes in
 * canonical form. It is compared as a string, so `/a/` or `/a/../b` would never meet `/a` or `/b`.
 */
export function isScope(text: string): boolean {
  if (Buffer.byteLength(text) > 1024 || !text.isWellFormed() || /\p{Cc}/u.test(text)) return false
  const drive = /^[A-Za-z]:(?=\\)/.exec(text)?.[0]
  const [separator, path] = drive === undefined ? ['/', text] : ['\\', text.slice(drive.length)]
  if (path === separator) return true
  const [first, ...parts] = path.split(separator)
  if (first !== '' || parts.length === 0) return false
  return parts.every((part) => part !== '' && part !== '.' && part !== '..')
}

/** @throws INVALID_ARGUMENT */
export function sessionScope(text: string): string {
  if (isScope(text)) return text
  throw new HoldfastError(
    'INVALID_ARGUMENT',
    `a scope is a canonical absolute path, not "${text.slice(0, 200)}"`,
    {
      next: 'give the real path of the directory, without a trailing slash',
    },
  )
}
