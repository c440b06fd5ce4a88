import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { backoffMs } from '../contract/backoff.js'
import { HoldfastError, isHoldfastError } from '../contract/errors.js'
import type { HubCalls } from '../contract/hub.js'
import { checkOptions, name, objectWith, option, optionsOf, text, whole } from '../contract/options.js'
import type { SessionReply } from '../contract/session-views.js'
import { type CloseReason, terminalOf } from '../contract/sessions.js'
import type { ChildIdentity } from './executor.js'
import { type NodeLog, silentLog } from './log.js'
import { isTransient } from './persistence.js'
import { identify, mayEndTree } from './process-identity.js'
import { endTree } from './process-tree.js'
import { type Closing, forget, keep, type Left, leftBehind } from './supervisor-state.js'

/** Options of {@link createSupervisor}. */
export interface SupervisorOptions {
  /** A hub, opened on the record or over HTTP. */
  readonly hub: Pick<HubCalls, 'openSession' | 'closeSession'>
  /** Id of the session that the process is. */
  readonly session: string
  /** The host that owns it: this machine. */
  readonly host: string
  /** The session's directory. */
  readonly scope: string
  /** The session it is a child of, stated at its first opening. */
  readonly parent?: string | undefined
  /** Crashes after which one is terminal. The count is the record's: it survives this process. */
  readonly restartBudget: number
  /** Program and arguments of the supervised process; it gets a process group of its own. */
  readonly command: readonly [string, ...string[]]
  /** Its working directory; `scope` when absent. */
  readonly cwd?: string | undefined
  /** Its environment; this process's own when absent. `HOLDFAST_SESSION` and `HOLDFAST_SESSION_EPOCH` are added. */
  readonly env?: NodeJS.ProcessEnv | undefined
  /** Keeps what runs, so that a later supervisor finds the process of one that was killed. One file a session. */
  readonly stateFile: string
  /** Who opens and closes, in the record; `supervisor` when absent. */
  readonly actor?: string | undefined
  /** How much the process had under way when it ended without having drained; 0 when absent. */
  readonly abandoned?: (() => number) | undefined
  /** Milliseconds from SIGTERM to SIGKILL; 10,000 when absent. */
  readonly stopGraceMs?: number | undefined
  /** Milliseconds between a crash and the next start, with jitter; 500 to 30,000 when absent. */
  readonly restartBackoff?: { readonly leastMs: number; readonly mostMs: number } | undefined
  /** A pino logger, or anything with its four methods; nothing is logged when absent. */
  readonly log?: NodeLog | undefined
}

/** How supervising ended. */
export type SupervisorEnd =
  | { readonly kind: 'stopped'; readonly session: SessionReply }
  /** It crashed past its restart budget: it does not come back without an operator. */
  | { readonly kind: 'terminal'; readonly session: SessionReply }
  /** The record refused (the session lives elsewhere), or did not answer a stop in time. The process was ended. */
  | { readonly kind: 'failed'; readonly error: Error }

/** A process that runs as a session. */
export interface Supervisor {
  /**
   * Ends what an earlier supervisor of this session left running, opens the session and starts the process.
   * @throws SESSION_ELSEWHERE, SCOPE_MISMATCH, SESSION_MISSING, HOST_RETIRED, SCOPE_NOT_AUTHORISED, INVALID_ARGUMENT
   */
  start(): Promise<void>
  /** Ends the process, closes the session as `reload` or `restart`, and starts both anew. Not counted as a crash. */
  again(reason: 'reload' | 'restart'): Promise<void>
  /** Ends the process and closes the session: for good with `disable` and `removed`, until the next start with `restart`. */
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

type Wish = { readonly kind: 'again'; readonly reason: 'reload' | 'restart'; done(): void } | Stop
interface Stop {
  readonly kind: 'stop'
  readonly reason: Exclude<CloseReason, 'crash'>
}

const form = optionsOf<SupervisorOptions>({
  hub: objectWith('a hub, or a client of one', ['openSession', 'closeSession']),
  session: name.id,
  host: name.host,
  scope: z.string(),
  parent: name.id.optional(),
  restartBudget: whole(0, 1_000_000),
  command: z.array(z.string()).min(1),
  cwd: z.string().optional(),
  env: option.names,
  stateFile: text('the path of a file'),
  actor: z.string().optional(),
  abandoned: option.function.optional(),
  stopGraceMs: whole(0).optional(),
  restartBackoff: z.strictObject({ leastMs: whole(0), mostMs: whole(0) }).optional(),
  log: option.log,
})

const defaults = { stopGraceMs: 10_000, restartBackoff: { leastMs: 500, mostMs: 30_000 } }
/** How long a stop waits for the record beside its grace. */
const closeWithinMs = 30_000
const callRetry = { leastMs: 100, mostMs: 5000 }

/**
 * Runs a process as a session (contract section 6): opens the session when it starts, and states on every close
 * what this side knows; whether a crash is terminal is the record's to say.
 * @throws INVALID_ARGUMENT
 */
export function createSupervisor(options: SupervisorOptions): Supervisor {
  checkOptions('createSupervisor', form, options)
  const { hub, session, host, scope, parent, restartBudget, actor = 'supervisor' } = options
  const { log = silentLog, stopGraceMs = defaults.stopGraceMs } = options
  const wishes: Wish[] = []
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
    keep(options.stateFile, { session, epoch, closing })
    const { reason } = closing
    const stated = { ...closing, epoch, terminal: terminalOf(reason) }
    const reply = await persist(() => hub.closeSession(session, stated, actor))
    log.info({ session, epoch, reason, terminal: reply.terminal, crashes: reply.crashes }, 'session closed')
    forget(options.stateFile)
    return reply
  }

  async function run(): Promise<Running> {
    const { epoch } = await open()
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
    keep(options.stateFile, { session, epoch, child: identity })
    log.info({ session, epoch, pid: child.pid }, 'session opened')
    current = { epoch, child: identity, exited }
    return current
  }

  /** True when it ended by itself in time. */
  async function endProcess({ child, exited }: Running): Promise<boolean> {
    const drained = child === undefined || !mayEndTree(child) || (await endTree(child, stopGraceMs))
    await exited
    return drained
  }

  /** The next wish, or undefined when the process ended first. */
  async function nextWish(running: Running): Promise<Wish | undefined> {
    const waiting = wishes.shift()
    if (waiting !== undefined) return waiting
    const asked = new Promise<void>((resolve) => {
      wished = resolve
    })
    await Promise.race([running.exited, asked])
    return wishes.shift()
  }

  async function supervise(first: Running): Promise<SupervisorEnd> {
    let running = first
    for (let crashes = 0; ; ) {
      const wish = await nextWish(running)
      const drained = await endProcess(running)
      const abandoned = drained && wish !== undefined ? 0 : (options.abandoned?.() ?? 0)
      const closing: Closing = {
        reason: wish?.reason ?? 'crash',
        drained: drained && wish !== undefined,
        abandoned,
      }
      const reply = await close(running.epoch, closing)
      if (wish?.kind === 'stop') return { kind: 'stopped', session: reply }
      if (wish === undefined && reply.terminal === true) return { kind: 'terminal', session: reply }
      crashes = wish === undefined ? crashes + 1 : 0
      if (crashes > 0) {
        const stopped = await pause(crashes)
        if (stopped) return { kind: 'stopped', session: await restate(reply, stopped) }
      }
      running = await run()
      if (wish?.kind === 'again') wish.done()
    }
  }

  /** Waits out the backoff after a crash, unless it is to stop. */
  async function pause(crashes: number): Promise<Stop | undefined> {
    const waitMs = backoffMs(options.restartBackoff ?? defaults.restartBackoff, crashes)
    await sleep(waitMs, undefined, { signal: halt.signal }).catch(() => undefined)
    const stop = wishes.find((wish): wish is Stop => wish.kind === 'stop')
    return stop
  }

  /** A crash closed it until it comes back; a stop for good must be stated under an opening of its own. */
  async function restate(crashed: SessionReply, { reason }: Stop): Promise<SessionReply> {
    if (terminalOf(reason) !== true) return crashed
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
    if (current !== undefined) await endProcess(current)
    const cause = error instanceof Error ? error : new Error(String(error))
    log.error({ session, error: cause.message }, 'supervising ends')
    return { kind: 'failed', error: cause }
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

  function ask(wish: Wish): void {
    wishes.push(wish)
    if (wish.kind === 'stop') {
      giveUpAt = performance.now() + stopGraceMs + closeWithinMs
      halt.abort()
    }
    wished()
  }

  return {
    start,
    again: async (reason) => {
      const done = new Promise<void>((resolve) => ask({ kind: 'again', reason, done: resolve }))
      await Promise.race([done, closed])
    },
    stop: async (reason) => {
      if (!started) throw new HoldfastError('INVALID_ARGUMENT', 'the supervisor was not started')
      ask({ kind: 'stop', reason })
      return await closed
    },
    closed,
  }
}
