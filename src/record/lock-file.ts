import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { HoldfastError } from '../contract/errors.js'

const pollMs = 25
let locksTaken = 0

/**
 * Takes an exclusive lock file and answers what releases it. A lock whose process is gone is taken over.
 * `deadlineAt` is in milliseconds of `performance.now()`. Errors: STORE_UNAVAILABLE when it is still held then.
 */
export async function lockFile(path: string, deadlineAt: number): Promise<() => void> {
  locksTaken += 1
  const mark = `${process.pid} ${processStart(process.pid)} ${locksTaken}\n`
  while (!take(path, mark)) {
    removeStale(path)
    if (performance.now() > deadlineAt) {
      const detail = `another process (${readOr(path, 'unknown').trim().split(' ')[0]}) holds ${path}`
      throw new HoldfastError('STORE_UNAVAILABLE', detail)
    }
    await sleep(pollMs)
  }
  return () => {
    if (readOr(path, '') === mark) rmSync(path, { force: true })
  }
}

/** Makes the file with its content in one step: a lock without an owner is never seen. */
function take(path: string, mark: string): boolean {
  const draft = `${path}.${mark.trim().replaceAll(' ', '-')}`
  writeFileSync(draft, mark)
  try {
    linkSync(draft, path)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

function removeStale(path: string): void {
  const mark = readOr(path, '')
  if (mark === '' || isHeld(mark)) return
  const aside = `${path}.stale-${process.pid}`
  try {
    renameSync(path, aside)
    // Another process may have taken over the stale lock since it was read: then this one is put back.
    if (readOr(aside, '') !== mark) linkSync(aside, path)
  } catch {
    // Somebody else was quicker; the next try looks again.
  }
  rmSync(aside, { force: true })
}

function isHeld(mark: string): boolean {
  const [pid = '0', start = ''] = mark.trim().split(' ')
  try {
    process.kill(Number(pid), 0)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false
  }
  return start === processStart(Number(pid))
}

/** When the process started, in kernel ticks, so that a process id used again is told apart; `?` elsewhere than on Linux. */
function processStart(pid: number): string {
  const stat = readOr(`/proc/${pid}/stat`, '')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '?'
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return otherwise
  }
}
