import { HoldfastError, isHoldfastError } from '../../contract/errors.js'
import { leavesDoubt, type Store, unusable } from './store.js'

/** The most operations, and about the most payload bytes, of one transaction. */
const maxBatchOperations = 1000
const maxBatchBytes = 8 * 1024 * 1024

/** What the mirror's commits have cost; each held the event loop for its time, bringing it to the disk not included. */
export interface MirrorStats {
  readonly commits: number
  /** Operations inside those commits, refused ones included. */
  readonly operations: number
  readonly longestMs: number
  readonly totalMs: number
}

/**
 * Group commit: operations wait for the next turn of the event loop and share one transaction, first in
 * first out. An operation is answered when the commit it was part of is on the disk.
 */
export interface Commits {
  /**
   * Adds an operation. It may refuse itself by throwing a HoldfastError before its first write, alone;
   * anything else it throws fails its whole batch.
   * @param bytes about how much it writes, beside a few columns
   */
  submit<T>(operation: () => T, bytes?: number): Promise<T>
  /**
   * Adds one that nobody waits for, and whose loss in a crash does no harm: it goes along with the next commit, or has
   * one of its own after a while.
   */
  submitLater(operation: () => void): Promise<void>
  /** What goes along with the next commit, the latest of its name only; it asks for none by itself. */
  alongNext(name: string, operation: () => void): void
  /** Commits what waits now, so that a reader sees it. */
  flush(): void
  stats(): MirrorStats
  /** Commits what waits, then refuses further operations; resolves when all of it is answered. */
  drain(): Promise<void>
}

interface Waiting {
  /** Does the operation; what it returns answers the caller, after the commit. */
  perform(): () => void
  fail(error: HoldfastError): void
  readonly bytes: number
}

/** An operation whose transaction is done, and is not on the disk yet. */
interface Committed {
  /** Answers the caller. */
  answer(): void
  fail(error: HoldfastError): void
}

const ignore = () => undefined

/** How long an operation that nobody waits for may be put off. Milliseconds. */
const laterMs = 50

/** `onCommit` is told how long each commit held the event loop. */
export function groupCommits(store: Store, file: string, onCommit?: (tookMs: number) => void): Commits {
  const queue: Waiting[] = []
  const along = new Map<string, () => void>()
  const stats = { commits: 0, operations: 0, longestMs: 0, totalMs: 0 }
  let refusal: HoldfastError | undefined
  let scheduled = false
  let timer: NodeJS.Timeout | undefined
  const unsynced: Committed[] = []
  let syncing = false
  let onSynced: () => void = ignore

  function add<T>(operation: () => T, bytes: number): Promise<T> {
    if (refusal !== undefined) return Promise.reject(refusal)
    return new Promise<T>((resolve, reject) => {
      queue.push({ perform: () => answered(operation, resolve, reject), fail: reject, bytes })
    })
  }

  function submit<T>(operation: () => T, bytes = 0): Promise<T> {
    const answer = add(operation, bytes)
    schedule()
    return answer
  }

  function submitLater(operation: () => void): Promise<void> {
    const answer = add(operation, 0)
    if (queue.length >= maxBatchOperations) schedule()
    else timer ??= setTimeout(schedule, laterMs)
    return answer
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
    clearTimeout(timer)
    timer = undefined
    const batch = queue.splice(0, batchLength(queue))
    if (batch.length === 0) return
    const startedAt = performance.now()
    unsynced.push(...commit(batch))
    const tookMs = performance.now() - startedAt
    stats.longestMs = Math.max(stats.longestMs, tookMs)
    stats.totalMs += tookMs
    onCommit?.(tookMs)
    if (!syncing) void syncAll()
  }

  function commit(batch: Waiting[]): Committed[] {
    try {
      if (refusal !== undefined) throw refusal
      const answers = store.transaction(() => {
        for (const operation of along.values()) operation()
        return batch.map((waiting) => waiting.perform())
      })
      along.clear()
      stats.commits += 1
      stats.operations += batch.length
      return answers.map((answer, at) => ({ answer, fail: batch[at]?.fail ?? ignore }))
    } catch (cause) {
      const error = failed(cause)
      return batch.map(({ fail }) => ({ answer: () => fail(error), fail }))
    }
  }

  function failed(cause: unknown): HoldfastError {
    const error = unusable(file, cause)
    if (leavesDoubt(cause)) refusal = error
    return error
  }

  /** While one sync is under way, what is committed meanwhile waits for the next. */
  async function syncAll(): Promise<void> {
    syncing = true
    while (unsynced.length > 0) {
      const waiting = unsynced.splice(0)
      try {
        await store.sync()
        answerAll(waiting)
      } catch (cause) {
        failAll(waiting, cause)
      }
    }
    syncing = false
    onSynced()
  }

  function answerAll(waiting: readonly Committed[]): void {
    for (const { answer } of waiting) answer()
  }

  function failAll(waiting: readonly Committed[], cause: unknown): void {
    const error = failed(cause)
    for (const { fail } of waiting) fail(error)
  }

  function flushAll(): void {
    while (queue.length > 0) flush()
  }

  async function drain(): Promise<void> {
    if (along.size > 0) void submit(ignore).catch(ignore)
    flushAll()
    refusal ??= new HoldfastError('MIRROR_UNUSABLE', `the mirror ${file} is closed`, {
      next: 'open it again',
    })
    if (!syncing) return
    await new Promise<void>((resolve) => {
      onSynced = resolve
    })
  }

  const alongNext = (name: string, operation: () => void) => void along.set(name, operation)

  return { submit, submitLater, alongNext, flush: flushAll, stats: () => ({ ...stats }), drain }
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
