import {
  closeSync,
  existsSync,
  fdatasync,
  fdatasyncSync,
  fsyncSync,
  mkdirSync,
  openSync,
  realpathSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import { promisify } from 'node:util'
import Database from 'libsql'
import { HoldfastError, isHoldfastError } from '../../contract/errors.js'

/**
 * The SQLite file under the mirror: one connection, locked for the life of the process. libsql aborts the
 * whole process on booleans and on untyped expressions (`select ?`), so only {@link checked} values are
 * bound, and statements name tables and columns. Never open the file itself with `node:fs` while it is locked: closing
 * any descriptor of it in this process would drop the kernel's locks.
 */
export interface Store {
  /** Runs a writing statement; returns the number of rows it changed. */
  change(sql: string, values: readonly Value[]): number
  first<Row>(sql: string, values: readonly Value[]): Row | undefined
  all<Row>(sql: string, values: readonly Value[]): Row[]
  /** Runs `work` in one transaction: all of it is there when this returns, nothing of it when it throws. */
  transaction<T>(work: () => T): T
  /** Resolves when every transaction until now is on the disk. Does not hold the event loop meanwhile. */
  sync(): Promise<void>
  /** The same, at once. */
  syncNow(): void
  /** Checkpoints and gives up the lock. Other programs may use the file when it returns. */
  close(): void
}

/** What a column holds. */
export type Value = string | number | null | Buffer

const dataSync = promisify(fdatasync)
const lockRetryMinMs = 5
const lockRetrySpreadMs = 20
/** The write-ahead log is cut back to this after a checkpoint. */
const logKeptBytes = 16 * 1024 * 1024

/**
 * Opens the file and takes its lock, waiting up to `lockWaitMs` for a holder that is just dying.
 * @throws HoldfastError MIRROR_LOCKED, MIRROR_UNUSABLE
 */
export function openStore(file: string, lockWaitMs: number): Store {
  return orUnusable(file, () => {
    makeFolder(dirname(resolve(file)))
    return lockedStore(file, lockWaitMs)
  })
}

/** Refuses what SQLite would not give back as it was stored (or libsql would abort on). */
export function checked(...values: Value[]): Value[] {
  for (const value of values) {
    if (typeof value === 'string' && value.includes('\0')) throw unfit('a text with a NUL character')
    if (typeof value === 'number' && !Number.isSafeInteger(value)) throw unfit(`the number ${value}`)
    if (typeof value === 'boolean' || value === undefined) throw unfit(`a value of type ${typeof value}`)
  }
  return values
}

/** Runs `work`; whatever is not of the catalogue becomes MIRROR_UNUSABLE naming the file. */
export function orUnusable<T>(file: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw unusable(file, error)
  }
}

/** The disk did not take what was written. */
class SyncFailed extends Error {
  override readonly name = 'SyncFailed'
}

/** The error for a mirror that cannot be read or written, with its cause. */
export function unusable(file: string, cause: unknown): HoldfastError {
  if (isHoldfastError(cause)) return cause
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new HoldfastError('MIRROR_UNUSABLE', `the mirror ${file} cannot be used: ${reason}`, { cause })
}

/** True when, after this error, nobody can tell what reached the disk: the file must be opened anew. */
export function leavesDoubt(error: unknown): boolean {
  // What a failed sync leaves unwritten a later one does not write.
  return error instanceof SyncFailed || /^SQLITE_(IOERR|CORRUPT|NOTADB)/.test(sqliteCode(error))
}

function unfit(what: string): HoldfastError {
  return new HoldfastError('INVALID_ARGUMENT', `the mirror cannot keep ${what}`)
}

function sqliteCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/**
 * Makes the folder and what is missing above it, durably: a power cut must not take a mirror with its
 * folder. Step by step, because Node's own recursive way never returns where the system refuses with ENOENT (/proc).
 */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return
  makeFolder(dirname(folder))
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if (!existsSync(folder)) throw error
  }
  const above = openSync(dirname(folder), 'r')
  fsyncSync(above)
  closeSync(above)
}

function lockedStore(file: string, lockWaitMs: number): Store {
  const deadline = performance.now() + lockWaitMs
  for (;;) {
    const store = tryLock(file)
    if (store !== undefined) return store
    if (performance.now() >= deadline) {
      throw new HoldfastError('MIRROR_LOCKED', `another process, or this one, holds the mirror ${file}`)
    }
    pause(lockRetryMinMs + Math.random() * lockRetrySpreadMs)
  }
}

/**
 * The store, locked, or undefined while somebody else holds the lock or is about to. Every refused try gives
 * up all it holds: two openers that kept their shared locks would wait for each other.
 */
function tryLock(file: string): Store | undefined {
  const connection = new Database(file)
  try {
    connection.exec('pragma locking_mode = exclusive')
    connection.exec('pragma synchronous = full')
    transaction(connection, () => refuseForeign(connection, file))
    enterLog(connection)
    return storeOn(connection, file)
  } catch (error) {
    release(connection)
    if (isBusy(error)) return undefined
    throw error
  }
}

function isBusy(error: unknown): boolean {
  return sqliteCode(error).startsWith('SQLITE_BUSY')
}

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** A database with tables but without ours is somebody else's: it is left as it was. */
function refuseForeign(connection: Database.Database, file: string): void {
  const rows = connection.prepare('select name from sqlite_master').all([]) as { name: string }[]
  if (rows.length === 0 || rows.some((row) => row.name === 'meta')) return
  throw new HoldfastError('MIRROR_UNUSABLE', `the database ${file} is not a Holdfast mirror`, {
    next: 'name another file with --mirror',
  })
}

function enterLog(connection: Database.Database): void {
  connection.exec(`pragma journal_size_limit = ${logKeptBytes}`)
  const row = connection.prepare('pragma journal_mode = wal').get([]) as { journal_mode: string }
  if (row.journal_mode === 'wal') return
  throw new HoldfastError('MIRROR_UNUSABLE', `no write-ahead log here (journal mode ${row.journal_mode})`)
}

/**
 * What `synchronous = full` does after every transaction, at a time of our own and off the event loop: the write-ahead log
 * is brought to the disk. (Checkpoints still order log and database themselves, as `normal` has it.)
 */
function logSync(connection: Database.Database, file: string) {
  connection.exec('pragma synchronous = normal')
  let log: number | undefined
  // The log is no place of locks, so that a descriptor of it does no harm; it exists from the first transaction on.
  const descriptor = (): number => {
    // SQLite keeps it beside the database itself, whatever links lead there.
    log ??= openSync(`${realpathSync(file)}-wal`, 'r')
    return log
  }
  return {
    sync: async () => {
      await dataSync(descriptor()).catch((cause: unknown) => Promise.reject(syncFailed(cause)))
    },
    syncNow: () => {
      try {
        fdatasyncSync(descriptor())
      } catch (cause) {
        throw syncFailed(cause)
      }
    },
    close: () => {
      if (log !== undefined) closeSync(log)
      log = undefined
    },
  }
}

function syncFailed(cause: unknown): SyncFailed {
  return new SyncFailed(cause instanceof Error ? cause.message : String(cause), { cause })
}

function storeOn(connection: Database.Database, file: string): Store {
  const log = logSync(connection, file)
  const statements = new Map<string, Database.Statement>()
  const prepared = (sql: string): Database.Statement => {
    let statement = statements.get(sql)
    if (statement === undefined) {
      statement = connection.prepare(sql)
      statements.set(sql, statement)
    }
    return statement
  }
  // One array argument each: a lone Buffer or null would be taken for named parameters.
  return {
    change: (sql, values) => prepared(sql).run([...values]).changes,
    first: <Row>(sql: string, values: readonly Value[]) => prepared(sql).get([...values]) as Row | undefined,
    all: <Row>(sql: string, values: readonly Value[]) => prepared(sql).all([...values]) as Row[],
    transaction: (work) => transaction(connection, work),
    sync: log.sync,
    syncNow: log.syncNow,
    close: () => {
      statements.clear()
      log.close()
      try {
        connection.exec('pragma journal_mode = delete')
      } finally {
        release(connection)
      }
    },
  }
}

function transaction<T>(connection: Database.Database, work: () => T): T {
  connection.exec('begin immediate')
  try {
    const value = work()
    connection.exec('commit')
    return value
  } catch (error) {
    rollBack(connection)
    throw error
  }
}

function rollBack(connection: Database.Database): void {
  if (connection.inTransaction) connection.exec('rollback')
}

/**
 * Gives up the lock. `close` alone does not while a prepared statement awaits the garbage collector; leaving
 * the exclusive mode does, with the next read. (It cannot be left in write-ahead mode, hence the order in
 * `close`.) What fails here leaves the lock to the collector, or to the end of the process.
 */
function release(connection: Database.Database): void {
  try {
    rollBack(connection)
    connection.exec('pragma locking_mode = normal')
    connection.exec('select name from sqlite_master')
  } catch {
    // Not ours to read: nothing is held.
  } finally {
    connection.close()
  }
}
