import { randomUUID } from 'node:crypto'
import { type Commits, groupCommits, type MirrorStats } from './mirror/commits.js'
import { type CopyBook, copyBook } from './mirror/copies.js'
import { type GrantBook, grantBook, hasChildren, readGrants, type StoredGrant } from './mirror/grants.js'
import { type ReportBook, readReports, reportBook, type StoredReport } from './mirror/reports.js'
import { type MirrorOwner, prepareMirror, readMeta, writeMeta } from './mirror/schema.js'
import { checked, openStore, orUnusable, type Store } from './mirror/store.js'

export type { MirrorStats } from './mirror/commits.js'
export type { Copy, StoredCopy } from './mirror/copies.js'
export type { StoredGrant } from './mirror/grants.js'
export type { Report, StoredReport } from './mirror/reports.js'
export type { MirrorOwner } from './mirror/schema.js'

export interface MirrorOptions extends MirrorOwner {
  /** The SQLite file; its folder is made when missing. On a local disk: the lock is the kernel's. */
  readonly file: string
  /** How long to wait, blocking, for a holder that is just dying. Default 2000. */
  readonly lockWaitMs?: number
  /** Told how many milliseconds each commit held the event loop. */
  readonly onCommit?: ((tookMs: number) => void) | undefined
  /** Wall clock in ms; a seam for tests. */
  readonly now?: () => number
}

/**
 * The node's own durable store: its copies, its grants, its unsent reports (contract sections 2 and 3).
 *
 * Every write resolves once the commit it was part of is on disk; writes asked for in the same turn of the
 * event loop share one commit and happen in the order they were asked for. When the commit fails, each
 * rejects with MIRROR_UNUSABLE and nothing of them is there; after an error that leaves doubt about the disk
 * every later write is refused too, until the file is opened again. A write that refuses itself does so
 * alone. Words with a NUL character and numbers that are not safe integers are INVALID_ARGUMENT.
 *
 * Reads are synchronous; those of grants and reports see every write that was asked for before, those of copies what
 * is committed.
 */
export interface Mirror extends CopyBook, GrantBook, ReportBook {
  readonly file: string
  /** Which start of this node this is: raised durably by every open, see {@link Mirror.startRefused}. */
  readonly incarnation: number
  /** Random, of this open only: tells a copied mirror from a repeated join. */
  readonly instance: string
  /**
   * Puts the stored incarnation back to what it was before this open: the record knows a later one, or another
   * process as this one. However often it is tried, such a mirror never counts up to what is in.
   */
  startRefused(): Promise<void>
  /** What a restart works from: every unanswered report and every unsettled grant, oldest first. */
  recovery(): { reports: StoredReport[]; grants: StoredGrant[] }
  /**
   * The last entry of the hub's log that this node saw with an answer that gave it work or took its reports. It goes along
   * with the next commit: what is executed or reported on the strength of an answer is never on the disk without it.
   */
  noteLogId(id: string): void
  /** `0-0` until it was set. */
  lastLogId(): string
  stats(): MirrorStats
  /** Commits what waits, then closes the file and gives up its lock. */
  close(): Promise<void>
}

/**
 * Opens a node's mirror, locks it for the life of the process and raises its incarnation. Blocks.
 * @throws HoldfastError MIRROR_LOCKED when somebody holds it still after `lockWaitMs`; MIRROR_UNUSABLE when
 *   it cannot be read or written, is no mirror, or is that of another hub, host or node
 */
export function openMirror(options: MirrorOptions): Mirror {
  const { file, lockWaitMs = 2000, now = Date.now } = options
  const store = openStore(file, lockWaitMs)
  try {
    const incarnation = orUnusable(file, () => {
      const raised = prepareMirror(store, file, options)
      store.syncNow()
      return raised
    })
    return mirrorOn(store, file, incarnation, now, options.onCommit)
  } catch (error) {
    store.close()
    throw error
  }
}

function mirrorOn(
  store: Store,
  file: string,
  incarnation: number,
  now: () => number,
  onCommit: MirrorOptions['onCommit'],
): Mirror {
  const commits = groupCommits(store, file, onCommit)
  let anyChildren = orUnusable(file, () => hasChildren(store))
  const onChild = () => {
    anyChildren = true
  }
  return {
    file,
    incarnation,
    instance: randomUUID(),
    ...readable(file, copyBook(store, commits, incarnation, now)),
    ...readableGrants(file, grantBook(store, commits, incarnation, now, onChild), commits),
    ...reportBook(store, commits, now, () => anyChildren),
    ...logPosition(store, commits, file),
    startRefused: () => commits.submit(() => writeMeta(store, 'incarnation', String(incarnation - 1))),
    recovery: () => {
      commits.flush()
      return orUnusable(file, () => ({ reports: readReports(store), grants: readGrants(store) }))
    },
    stats: commits.stats,
    close: closing(store, commits, file),
  }
}

function readable(file: string, book: CopyBook): CopyBook {
  return { ...book, copy: (deliveryId) => orUnusable(file, () => book.copy(deliveryId)) }
}

function readableGrants(file: string, book: GrantBook, commits: Commits): GrantBook {
  return {
    ...book,
    holdsGrant: (grant) => {
      commits.flush()
      return orUnusable(file, () => book.holdsGrant(grant))
    },
  }
}

function logPosition(store: Store, commits: Commits, file: string): Pick<Mirror, 'noteLogId' | 'lastLogId'> {
  return {
    noteLogId: (id) => {
      checked(id)
      commits.alongNext('last_log_id', () => writeMeta(store, 'last_log_id', id))
    },
    lastLogId: () => orUnusable(file, () => readMeta(store, 'last_log_id') ?? '0-0'),
  }
}

function closing(store: Store, commits: Commits, file: string): () => Promise<void> {
  let closed: Promise<void> | undefined
  const close = async (): Promise<void> => {
    await commits.drain()
    orUnusable(file, store.close)
  }
  return () => {
    closed ??= close()
    return closed
  }
}
