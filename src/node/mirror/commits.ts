import { HoldfastError, isHoldfastError } from '../../contract/errors.js'
import { leavesDoubt, type Store, unusable } from './store.js'

/** The most operations, and about the most payload bytes, of one transaction. */
export const maxBatchOperations = 1000
export const maxBatchBytes = 8 * 1024 * 1024

/** What the mirror's commits have cost; each blocked the event loop for its time. */
export interface MirrorStats {
  readonly commits: number
  /** Operations inside those commits, refused ones included. */
  readonly operations: number
  readonly longestMs: number
  readonly totalMs: number
}

/**
 * Group commit: operations wait for the next turn of the event loop and share one transaction, first in
 * first out. An operation is answered after the commit it was part of.
 */
export interface Commits {
  /**
   * Adds an operation. It may refuse itself by throwing a HoldfastError before its first write, alone;
   * anything else it throws fails its whole batch.
   * @param bytes about how much it writes, beside a few columns
   */
  submit<T>(operation: () => T, bytes?: number): Promise<T>
  stats(): MirrorStats
  /** Commits what waits, then refuses further operations. */
  drain(): void
}

interface Waiting {
  /** Does the operation; what it returns answers the caller, after the commit. */
  perform(): () => void
  fail(error: HoldfastError): void
  readonly bytes: number
}

/** `onCommit` is told how long each commit held the event loop. */
export function groupCommits(store: Store, file: string, onCommit?: (tookMs: number) => void): Commits {
  const queue: Waiting[] = []
  const stats = { commits: 0, operations: 0, longestMs: 0, totalMs: 0 }
  let refusal: HoldfastError | undefined
  let scheduled = false

  function submit<T>(operation: () => T, bytes = 0): Promise<T> {
    if (refusal !== undefined) return Promise.reject(refusal)
    return new Promise<T>((resolve, reject) => {
      queue.push({ perform: () => answered(operation, resolve, reject), fail: reject, bytes })
      schedule()
    })
  }

  function schedule(): void {
    if (scheduled) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      flush()
      if (queue.length > 0) schedule()
    })
  }

  function flush(): void {
    const batch = queue.splice(0, batchLength(queue))
    if (batch.length === 0) return
    const startedAt = performance.now()
    const answers = commit(batch)
    const tookMs = performance.now() - startedAt
    stats.longestMs = Math.max(stats.longestMs, tookMs)
    stats.totalMs += tookMs
    onCommit?.(tookMs)
    for (const answer of answers) answer()
  }

  function commit(batch: Waiting[]): (() => void)[] {
    try {
      if (refusal !== undefined) throw refusal
      const answers = store.transaction(() => batch.map((waiting) => waiting.perform()))
      stats.commits += 1
      stats.operations += batch.length
      return answers
    } catch (cause) {
      const error = unusable(file, cause)
      if (leavesDoubt(cause)) refusal = error
      return batch.map((waiting) => () => waiting.fail(error))
    }
  }

  function drain(): void {
    while (queue.length > 0) flush()
    refusal ??= new HoldfastError('MIRROR_UNUSABLE', `the mirror ${file} is closed`, {
      next: 'open it again',
    })
  }

  return { submit, stats: () => ({ ...stats }), drain }
}

function answered<T>(
  operation: () => T,
  resolve: (value: T) => void,
  reject: (error: HoldfastError) => void,
): () => void {
  try {
    const value = operation()
    return () => resolve(value)
  } catch (error) {
    if (isHoldfastError(error)) return () => reject(error)
    throw error
  }
}

function batchLength(queue: readonly Waiting[]): number {
  let bytes = 0
  for (const [index, waiting] of queue.entries()) {
    bytes += waiting.bytes
    if (index + 1 === maxBatchOperations || bytes >= maxBatchBytes) return index + 1
  }
  return queue.length
}
