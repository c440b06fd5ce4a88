import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import { HoldfastError } from '../contract/errors.js'
import { type CloseReason, closeReasons } from '../contract/sessions.js'
import type { ChildIdentity } from './executor.js'
import { isFromHere, mayEndTree } from './process-identity.js'

// What a supervisor runs, kept in a file beside it: the one thing that must outlive its kill -9.

/** The process of an opening. */
export interface Kept {
  readonly session: string
  readonly epoch: number
  /** Absent where it could not be started. */
  readonly child?: ChildIdentity | undefined
  /** The process has ended, and so the session is to be closed. */
  readonly closing?: Closing | undefined
}

export interface Closing {
  readonly reason: CloseReason
  readonly drained: boolean
  readonly abandoned: number
}

/** What an earlier supervisor left: it was killed before it could close the session. */
export interface Left {
  readonly epoch: number
  /** What still runs of it. */
  readonly alive: ChildIdentity | undefined
  /** What the session is to be closed with. */
  readonly closing: Closing
}

const shape = z.object({
  session: z.string(),
  epoch: z.number(),
  child: z
    .object({
      pid: z.number(),
      group: z.number(),
      startTime: z.string(),
      bootId: z.string(),
      namespace: z.string(),
    })
    .optional(),
  closing: z.object({ reason: z.enum(closeReasons), drained: z.boolean(), abandoned: z.number() }).optional(),
})

/** Durable when it returns. @throws INVALID_ARGUMENT when the file cannot be written */
export function keep(file: string, kept: Kept): void {
  try {
    write(file, kept)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new HoldfastError('INVALID_ARGUMENT', `the state file ${file} cannot be written: ${why}`, {
      cause: error,
      current: file,
      next: 'make room for it and let this user write it and its directory, or name another stateFile; then start again',
    })
  }
}

function write(file: string, kept: Kept): void {
  mkdirSync(dirname(file), { recursive: true })
  const text = JSON.stringify(kept)
  const written = `${file}.new`
  const descriptor = openSync(written, 'w', 0o600)
  writeSync(descriptor, text)
  fsyncSync(descriptor)
  closeSync(descriptor)
  renameSync(written, file)
}

export function forget(file: string): void {
  rmSync(file, { force: true })
}

/** @throws INVALID_ARGUMENT when the file is another session's, or none of ours */
export function leftBehind(file: string, session: string): Left | undefined {
  const kept = read(file)
  if (kept === undefined) return undefined
  if (kept.session !== session) {
    throw new HoldfastError(
      'INVALID_ARGUMENT',
      `${file} belongs to session ${kept.session}, not ${session}`,
      {
        next: 'give every session a state file of its own',
      },
    )
  }
  const { epoch, child, closing } = kept
  const alive = child !== undefined && mayEndTree(child) ? child : undefined
  return {
    epoch,
    alive,
    closing: closing ?? { reason: reasonOf(child, alive), drained: false, abandoned: 0 },
  }
}

/** Nobody asked it to end, and it is gone: a crash, unless its machine or container went under it. */
function reasonOf(child: ChildIdentity | undefined, alive: ChildIdentity | undefined): CloseReason {
  const wentDown = child !== undefined && !isFromHere(child)
  return alive !== undefined || wentDown ? 'restart' : 'crash'
}

function read(file: string): z.output<typeof shape> | undefined {
  try {
    return shape.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw new HoldfastError('INVALID_ARGUMENT', `${file} is no state file of a supervisor`, {
      cause: error,
      next: 'look whether its process still runs, then remove the file',
    })
  }
}
