import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
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
  /** Runs `work` in one transaction: all of it is durable when this returns, nothing of it when it throws. */
  transaction<T>(work: () => T): T
  /** Checkpoints and gives up the lock. Other programs may use the file when it returns. */
  close(): void
}

/** What a column holds. */
export type Value = string | number | null | Buffer

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
    return storeOn(lockedConnection(file, lockWaitMs), file)
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

/** The error for a mirror that cannot be read or written, with its cause. */
export function unusable(file: string, cause: unknown): HoldfastError {
  if (isHoldfastError(cause)) return cause
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new HoldfastError('MIRROR_UNUSABLE', `the mirror ${file} cannot be used: ${reason}`, { cause })
}

/** True when, after this error, nobody can tell what reached the disk: the file must be opened anew. */
export function leavesDoubt(error: unknown): boolean {
  return /^SQLITE_(IOERR|CORRUPT|NOTADB)/.test(sqliteCode(error))
}

function unfit(what: string): HoldfastError {
  return new HoldfastError('INVALID_ARGUMENT', `the mirror cannot keep ${what}`)
}

function sqliteCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** Makes the folder and what is missing above it, durably: a power cut must not take a mirror with its folder. */
function makeFolder(folder: string): void {
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (first === undefined) return
  for (let at = folder; ; at = dirname(at)) {
    const descriptor = openSync(dirname(at), 'r')
    fsyncSync(descriptor)
    closeSync(descriptor)
    if (at === first || at === dirname(at)) return
  }
}

function lockedConnection(file: string, lockWaitMs: number): Database.Database {
  const deadline = performance.now() + lockWaitMs
  for (;;) {
    const connection = tryLock(file)
    if (connection !== undefined) return connection
    if (performance.now() >= deadline) {
      throw new HoldfastError('MIRROR_LOCKED', `another process, or this one, holds the mirror ${file}`)
    }
    pause(lockRetryMinMs + Math.random() * lockRetrySpreadMs)
  }
}

/**
 * A connection inside an immediate transaction, or undefined while somebody holds the lock. Every refused
 * try closes its connection: two openers that kept their shared locks would wait for each other. Only
 * `exec` until the lock is ours: a prepared statement keeps a closed connection, with its locks, alive.
 */
function tryLock(file: string): Database.Database | undefined {
  const connection = new Database(file)
  try {
    connection.exec('pragma locking_mode = exclusive')
    connection.exec('pragma synchronous = full')
    connection.exec('begin immediate')
    return connection
  } catch (error) {
    connection.close()
    if (sqliteCode(error).startsWith('SQLITE_BUSY')) return undefined
    throw error
  }
}

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

function storeOn(connection: Database.Database, file: string): Store {
  try {
    refuseForeign(connection, file)
    connection.exec('commit')
  } catch (error) {
    release(connection)
    throw error
  }
  const store = statementsOn(connection)
  try {
    enterLog(connection, store)
  } catch (error) {
    store.close()
    throw error
  }
  return store
}

/** A database with tables but without ours is somebody else's: it is left as it was. */
function refuseForeign(connection: Database.Database, file: string): void {
  const rows = connection.prepare('select name from sqlite_master').all([]) as { name: string }[]
  if (rows.length === 0 || rows.some((row) => row.name === 'meta')) return
  throw new HoldfastError('MIRROR_UNUSABLE', `the database ${file} is not a Holdfast mirror`, {
    next: 'name another file with --mirror',
  })
}

function enterLog(connection: Database.Database, store: Store): void {
  connection.exec(`pragma journal_size_limit = ${logKeptBytes}`)
  const mode = store.first<{ journal_mode: string }>('pragma journal_mode = wal', [])?.journal_mode
  if (mode === 'wal') return
  throw new HoldfastError('MIRROR_UNUSABLE', `no write-ahead log here (journal mode ${mode})`)
}

function statementsOn(connection: Database.Database): Store {
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
    close: () => {
      statements.clear()
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
 * the exclusive mode does, with the next read. (It cannot be left in write-ahead mode, hence the order in `close`.)
 */
function release(connection: Database.Database): void {
  rollBack(connection)
  connection.exec('pragma locking_mode = normal')
  connection.exec('select name from sqlite_master')
  connection.close()
}
