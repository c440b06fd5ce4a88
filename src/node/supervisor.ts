import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../contract/backoff.js'
import { HoldfastError, isHoldfastError } from '../contract/errors.js'
import { checkOptions } from '../contract/options.js'
import type { SessionReply } from '../contract/session-views.js'
import { type CloseReason, terminalOf } from '../contract/sessions.js'
import type { ChildIdentity } from './executor.js'
import { silentLog } from './log.js'
import { isTransient } from './persistence.js'
import { identify, mayEndTree } from './process-identity.js'
import { endTree } from './process-tree.js'
import { type SupervisorOptions, supervisorForm } from './supervisor-options.js'
import { type Closing, forget, keep, type Left, leftBehind } from './supervisor-state.js'

export type { SupervisorOptions } from './supervisor-options.js'

/** How supervising ended. */
export type SupervisorEnd =
  | { readonly kind: 'stopped'; readonly session: SessionReply }
  /** It crashed past its restart budget: it does not come back without an operator. */
  | { readonly kind: 'terminal'; readonly session: SessionReply }
  /**
   * The record refused (the session lives elsewhere) or did not answer a stop in time, or the state file cannot be
   * written. The process was ended.
   */
  | { readonly kind: 'failed'; readonly error: Error }

/** A process that runs as a session. */
export interface Supervisor {
  /**
   * Ends what an earlier supervisor of this session left running, opens the session and starts the process.
   * @throws SESSION_ELSEWHERE, SCOPE_MISMATCH, SESSION_MISSING, HOST_RETIRED, SCOPE_NOT_AUTHORISED, INVALID_ARGUMENT
   */
  start(): Promise<void>
  /**
   * Ends the process, closes the session as `reload` or `restart`, and starts both anew. Not counted as a crash.
   * @throws what supervising failed with, or CLOSED where it ended before; INVALID_ARGUMENT before the start
   */
  again(reason: 'reload' | 'restart'): Promise<void>
  /**
   * Ends the process and closes the session: for good with `disable` and `removed`, until the next start with `restart`.
   * Of several calls one for good stands, whichever came first.
   */
  stop(reason: Exclude<CloseReason, 'crash'>): Promise<SupervisorEnd>
  /** How it ended; resolves once. */
  readonly closed: Promise<SupervisorEnd>
}

interface Running {
  readonly epoch: number
  /** Absent where it could not be started. */
  readonly child: ChildIdentity | undefined
  /** Resolves when the process has ended, however. */
  readonly exited: Promise<void>
}

interface Again {
  readonly reason: 'reload' | 'restart'
  done(): void
}
type StopReason = Exclude<CloseReason, 'crash'>

const defaults = { stopGraceMs: 10_000, restartBackoff: { leastMs: 500, mostMs: 30_000 } }
/** How long a stop waits for the record beside its grace. */
const closeWithinMs = 30_000
/** What an opening is closed with whose process was not started yet. */
const notStarted: Closing = { reason: 'restart', drained: true, abandoned: 0 }
const callRetry = { leastMs: 100, mostMs: 5000 }

/**
 * Runs a process as a session (contract section 6): opens the session when it starts, and states on every close
 * what this side knows; whether a crash is terminal is the record's to say.
 * @throws INVALID_ARGUMENT
 */
export function createSupervisor(options: SupervisorOptions): Supervisor {
  checkOptions('createSupervisor', supervisorForm, options)
  const { hub, session, host, scope, parent, restartBudget, actor = 'supervisor' } = options
  const { log = silentLog, stopGraceMs = defaults.stopGraceMs } = options
  const agains: Again[] = []
  /** The strongest stop that was asked for. */
  let stopping: StopReason | undefined
  let wished: () => void = () => undefined
  let end: (how: SupervisorEnd) => void = () => undefined
  const closed = new Promise<SupervisorEnd>((resolve) => {
    end = resolve
  })
  const halt = new AbortController()
  let started = false
  let current: Running | undefined
  let giveUpAt = Number.POSITIVE_INFINITY

  /** Repeats a call until the record answers, or a stop has waited for it long enough. */
  async function persist<Value>(call: () => Promise<Value>): Promise<Value> {
    for (let failures = 1; ; failures += 1) {
      try {
        return await call()
      } catch (error) {
        if (!isTransient(error) || performance.now() >= giveUpAt) throw error
        log.warn({ session, error: error.message, failures }, 'the record does not answer')
        await sleep(backoffMs(callRetry, failures))
      }
    }
  }

  const open = () => persist(() => hub.openSession(session, { host, scope, restartBudget, parent }, actor))

  /** What is stated is kept first: a supervisor that dies here leaves it to the next. */
  async function close(epoch: number, closing: Closing): Promise<SessionReply> {
    current = undefined
    onFile(() => keep(options.stateFile, { session, epoch, closing }))
    const { reason } = closing
    const stated = { ...closing, epoch, terminal: terminalOf(reason) }
    const reply = await persist(() => hub.closeSession(session, stated, actor))
    log.info({ session, epoch, reason, terminal: reply.terminal, crashes: reply.crashes }, 'session closed')
    onFile(() => forget(options.stateFile))
    return reply
  }

  /** A session whose process has ended is closed all the same where the file cannot be written. */
  function onFile(change: () => void): void {
    try {
      change()
    } catch (error) {
      log.warn({ session, error: String(error) }, 'the state file could not be changed')
    }
  }

  /** Nothing is started that a later supervisor could not find: the file is written before, and again with the process. */
  async function run(): Promise<Running> {
    const { epoch } = await open()
    current = { epoch, child: undefined, exited: Promise.resolve() }
    keep(options.stateFile, { session, epoch, closing: notStarted })
    const [program, ...args] = options.command
    const env = {
      ...(options.env ?? process.env),
      HOLDFAST_SESSION: session,
      HOLDFAST_SESSION_EPOCH: String(epoch),
    }
    const child = spawn(program, args, { cwd: options.cwd ?? scope, env, detached: true, stdio: 'inherit' })
    const exited = new Promise<void>((resolve) => {
      child.once('exit', () => resolve())
      child.once('error', (error) => {
        log.error({ session, error: error.message }, 'the process could not be started')
        resolve()
      })
    })
    const identity = child.pid === undefined ? undefined : identify(child.pid)
    const running = { epoch, child: identity, exited }
    current = running
    keep(options.stateFile, { session, epoch, child: identity })
    log.info({ session, epoch, pid: child.pid }, 'session opened')
    return running
  }

  /** Ends the process, and says what its session is to be closed with: a stop that was asked for until now, if any. */
  async function ended(running: Running, because: 'crash' | 'reload' | 'restart'): Promise<Closing> {
    const drained = (await endProcess(running)) && because !== 'crash'
    const reason = because === 'crash' ? because : (stopping ?? because)
    return { reason, drained, abandoned: drained ? 0 : (options.abandoned?.() ?? 0) }
  }

  /** True when it ended by itself in time. */
  async function endProcess({ child, exited }: Running): Promise<boolean> {
    const drained = child === undefined || !mayEndTree(child) || (await endTree(child, stopGraceMs))
    await exited
    return drained
  }

  /** Waits until it is wished to end, or has ended; false when the process ended first. */
  async function isWished(running: Running): Promise<boolean> {
    const waits = () => stopping !== undefined || agains.length > 0
    if (waits()) return true
    const asked = new Promise<void>((resolve) => {
      wished = resolve
    })
    await Promise.race([running.exited, asked])
    return waits()
  }

  async function supervise(first: Running): Promise<SupervisorEnd> {
    let running = first
    for (let crashes = 0; ; ) {
      const asked = await isWished(running)
      const again = asked ? agains.shift() : undefined
      const reason = asked ? (again?.reason ?? 'restart') : 'crash'
      const reply = await close(running.epoch, await ended(running, reason))
      if (!asked && reply.terminal === true) return { kind: 'terminal', session: reply }
      crashes = asked ? 0 : crashes + 1
      if (crashes > 0) await pause(crashes)
      if (stopping !== undefined) return { kind: 'stopped', session: await restate(reply, stopping) }
      running = await run()
      again?.done()
    }
  }

  /** Waits out the backoff after a crash, unless it is to stop. */
  async function pause(crashes: number): Promise<void> {
    const waitMs = backoffMs(options.restartBackoff ?? defaults.restartBackoff, crashes)
    await sleep(waitMs, undefined, { signal: halt.signal }).catch(() => undefined)
  }

  /** A stop for good that came after the session was closed until it comes back: stated under an opening of its own. */
  async function restate(reply: SessionReply, reason: StopReason): Promise<SessionReply> {
    if (terminalOf(reason) !== true || reply.terminal === true) return reply
    const { epoch } = await open()
    return await close(epoch, { reason, drained: true, abandoned: 0 })
  }

  /** What an earlier supervisor left is ended, and its opening closed as what it was. */
  async function takeAfter(left: Left): Promise<SupervisorEnd | undefined> {
    if (left.alive !== undefined) await endTree(left.alive, stopGraceMs)
    try {
      const reply = await close(left.epoch, left.closing)
      if (left.closing.reason === 'crash' && reply.terminal === true)
        return { kind: 'terminal', session: reply }
    } catch (error) {
      // Somebody opened or moved it since: opening says which.
      if (!isHoldfastError(error, 'STALE_EPOCH', 'SESSION_MISSING', 'SESSION_NOT_FOUND')) throw error
    }
    return undefined
  }

  async function failed(error: unknown): Promise<SupervisorEnd> {
    const cause = error instanceof Error ? error : new Error(String(error))
    log.error({ session, error: cause.message }, 'supervising ends')
    giveUpAt = Math.min(giveUpAt, performance.now() + stopGraceMs + closeWithinMs)
    await endAndClose().catch((also: unknown) => {
      log.error({ session, error: String(also) }, 'the session could not be closed')
    })
    return { kind: 'failed', error: cause }
  }

  /** What runs, or was opened to, when supervising fails. */
  async function endAndClose(): Promise<void> {
    if (current !== undefined) await close(current.epoch, await ended(current, 'restart'))
  }

  async function start(): Promise<void> {
    if (started) throw new HoldfastError('INVALID_ARGUMENT', 'a supervisor is started once; make another')
    started = true
    try {
      await begin()
    } catch (error) {
      end(await failed(error))
      throw error
    }
  }

  async function begin(): Promise<void> {
    const left = leftBehind(options.stateFile, session)
    const ended = left === undefined ? undefined : await takeAfter(left)
    if (ended !== undefined) return end(ended)
    const running = await run()
    void supervise(running).catch(failed).then(end)
  }

  function checkStarted(): void {
    if (!started) throw new HoldfastError('INVALID_ARGUMENT', 'the supervisor was not started')
  }

  /** Of several, one for good stands. */
  function stop(reason: StopReason): void {
    if (stopping === undefined || terminalOf(reason) === true) stopping = reason
    giveUpAt = performance.now() + stopGraceMs + closeWithinMs
    halt.abort()
    wished()
  }

  return {
    start,
    again: async (reason) => {
      checkStarted()
      const done = new Promise<undefined>((resolve) => {
        agains.push({ reason, done: () => resolve(undefined) })
        wished()
      })
      const how = await Promise.race([done, closed])
      if (how?.kind === 'failed') throw how.error
      if (how !== undefined) {
        throw new HoldfastError('CLOSED', `the supervisor has ended (${how.kind})`, { next: 'make another' })
      }
    },
    stop: async (reason) => {
      checkStarted()
      stop(reason)
      return await closed
    },
    closed,
  }
}
