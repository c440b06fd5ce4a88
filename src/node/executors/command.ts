import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { Duplex, type Readable, type Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { checkOptions, option, optionsOf, whole } from '../../contract/options.js'
import type { Outcome } from '../../contract/outcomes.js'
import type { Attempt, ChildIdentity, Executor, ExecutorHooks } from '../executor.js'
import { identify } from '../process-identity.js'
import { endTree, reapMs, signalGroup } from '../process-tree.js'
import { type Capture, capture, stdoutFields, wholeCharacters } from './command-output.js'
import { isTimeout, messageOf } from './failures.js'

/** The work is done: `result`. */
const EXIT_DONE = 0
/** sysexits.h EX_DATAERR: the work will never succeed: `terminal`. */
const EXIT_DATAERR = 65
/** sysexits.h EX_TEMPFAIL: the command asserts that it did nothing: `not_sent`. */
export const EXIT_TEMPFAIL = 75

/** What {@link commandExecutor} runs, and its limits. */
export interface CommandExecutorOptions {
  /** Shell text; it is run once an attempt. */
  readonly command: string
  /** Path of the shell that gets `-c command`; `/bin/sh` when absent. */
  readonly shell?: string
  /** So much of stdout goes into a result, in bytes, and the rest is read and dropped; 262,144 when absent. */
  readonly maxOutputBytes?: number
  /** Largest JSON text of a result, in bytes, to which stdout is cut further; 262,144 when absent. */
  readonly maxResultBytes?: number
  /** Milliseconds from SIGTERM to SIGKILL; 5,000 when absent. */
  readonly killGraceMs?: number
  /** The command's environment; this process's own when absent. The `HOLDFAST_` names are added. */
  readonly env?: NodeJS.ProcessEnv
}

const form = optionsOf<CommandExecutorOptions>({
  command: z.string(),
  shell: z.string().optional(),
  maxOutputBytes: option.bytes,
  maxResultBytes: option.bytes,
  killGraceMs: whole(0).optional(),
  env: option.names,
})

type Settings = Required<CommandExecutorOptions>

const stderrTailBytes = 4096
const stdoutTailBytes = 1024
/** After exit, how long a grandchild that keeps stdout open may hold us up. */
const drainMs = 1000

// Waits for the word, closes the gate's descriptor and becomes the command's shell. When the node dies the
// pipe ends, and so does the gate. Always /bin/sh: other shells read start-up files first.
const gateScript =
  'IFS= read -r holdfast_go <&3 && [ "$holdfast_go" = go ] || exit 75; ' +
  'unset holdfast_go; exec 3<&-; exec "$0" -c "$1"'

/**
 * Runs attempts as a shell command, in a process group of its own (contract section 4).
 *
 * The payload is on stdin, byte for byte. The context is in the environment: HOLDFAST_ATTEMPT (a fit
 * idempotency key), HOLDFAST_DELIVERY, HOLDFAST_ATTEMPT_NUMBER, HOLDFAST_EPOCH, HOLDFAST_MESSAGE,
 * HOLDFAST_CONVERSATION, HOLDFAST_SENDER, HOLDFAST_HUB, HOLDFAST_HOST, HOLDFAST_NODE, HOLDFAST_SHA256 and, where
 * there is one, HOLDFAST_SESSION, HOLDFAST_PARENT, HOLDFAST_CONTENT_TYPE, HOLDFAST_REPLAY. The command does not run before
 * `childStarted` has resolved; if the node dies first, it never runs. If the node dies while a payload over
 * the pipe's size is on its way, stdin ends early: HOLDFAST_SHA256 tells.
 *
 * | how it ends | outcome |
 * |---|---|
 * | exit 0 | `result` `{"exitCode":0,"stdout":"…"}`; `stdoutBase64` when it is not UTF-8; `truncated` and `stdoutBytes` when cut |
 * | exit 65 | `terminal` `exit_65` |
 * | exit 75 | `not_sent` `exit_75` |
 * | any other exit, or a signal | `outcome_unknown` `exit_<n>`, `signal_<NAME>` |
 * | `attempt.signal`: SIGTERM to the group, SIGKILL `killGraceMs` later | by its exit if that is 0, 65 or 75, else `outcome_unknown` `timed_out` (the reason is a TimeoutError) or `aborted` |
 * | nothing was run | `not_sent` `spawn_failed`, `not_recorded`, `timed_out`, `aborted` |
 *
 * Processes it leaves in the background do not hold the attempt up; they lose stdout and stderr after a
 * second. Those that leave the group (`setsid`) are out of the node's sight. POSIX systems only.
 * @throws INVALID_ARGUMENT for options that are none
 */
export function commandExecutor(options: CommandExecutorOptions): Executor {
  checkOptions('commandExecutor', form, options)
  const { command, shell = '/bin/sh', env = process.env, killGraceMs = 5000 } = options
  const { maxOutputBytes = 262_144, maxResultBytes = 262_144 } = options
  const settings: Settings = { command, shell, env, killGraceMs, maxOutputBytes, maxResultBytes }
  return { run: (attempt, hooks) => run(settings, attempt, hooks) }
}

async function run(settings: Settings, attempt: Attempt, hooks: ExecutorHooks): Promise<Outcome> {
  const abort = watchAbort(attempt.signal)
  try {
    if (attempt.signal.aborted) return notSent(await abort.happened)
    const child = await start(settings, attempt)
    return 'kind' in child ? child : await conduct(child, settings, attempt, abort.happened, hooks)
  } catch (error) {
    return unknown('executor_failed', JSON.stringify({ message: messageOf(error) }))
  } finally {
    abort.dispose()
  }
}

async function conduct(
  child: Child,
  settings: Settings,
  attempt: Attempt,
  abort: Promise<string>,
  hooks: ExecutorHooks,
): Promise<Outcome> {
  try {
    const refusal = await waitAtGate(child, attempt.signal, abort, hooks)
    if (refusal !== undefined) return await dismiss(child, refusal)
    child.stdin.end(attempt.payload) // first, so that what fits the pipe is there before the command
    child.gate.end('go\n')
    const ending = await supervise(child, abort, settings.killGraceMs)
    return outcomeOf(ending, child, settings)
  } finally {
    for (const pipe of child.pipes) pipe.destroy()
  }
}

// Start

interface Exit {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
}

interface Child {
  readonly identity: ChildIdentity
  readonly stdin: Writable
  readonly gate: Duplex
  readonly stdout: Capture
  readonly stderr: Capture
  readonly exited: Promise<Exit>
  readonly closed: Promise<void>
  readonly pipes: readonly (Readable | Writable)[]
}

/** Starts the shell that waits at the gate, or says why there is none. */
async function start(settings: Settings, attempt: Attempt): Promise<Child | Outcome> {
  try {
    accessSync(settings.shell, constants.X_OK)
    const child = spawn('/bin/sh', ['-c', gateScript, settings.shell, settings.command], {
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      detached: true,
      env: { ...settings.env, ...contextOf(attempt) },
    })
    if (child.pid === undefined) throw await failureOf(child)
    return follow(child, child.pid, settings)
  } catch (error) {
    return notSent('spawn_failed', { message: messageOf(error) })
  }
}

/** A name without a value is left out, also when this process's own environment has it. */
function contextOf(attempt: Attempt): NodeJS.ProcessEnv {
  const { message, target } = attempt
  return {
    HOLDFAST_ATTEMPT: attempt.id,
    HOLDFAST_DELIVERY: attempt.deliveryId,
    HOLDFAST_ATTEMPT_NUMBER: String(attempt.number),
    HOLDFAST_EPOCH: String(attempt.epoch),
    HOLDFAST_MESSAGE: message.id,
    HOLDFAST_CONVERSATION: message.conversation,
    HOLDFAST_SENDER: message.sender,
    HOLDFAST_HUB: attempt.hub,
    HOLDFAST_HOST: attempt.host,
    HOLDFAST_NODE: attempt.node,
    HOLDFAST_REPLAY: attempt.replay ? '1' : undefined,
    HOLDFAST_SESSION: target.session,
    HOLDFAST_PARENT: message.parent,
    HOLDFAST_CONTENT_TYPE: message.contentType,
    HOLDFAST_SHA256: message.sha256,
  }
}

function failureOf(child: ChildProcess): Promise<Error> {
  return new Promise((resolve) => child.once('error', resolve))
}

function follow(child: ChildProcess, pid: number, settings: Settings): Child {
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (exitCode, signal) => resolve({ exitCode, signal }))
  })
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  child.on('error', ignore)
  const [stdin, stdout, stderr, gate] = child.stdio
  const identity = identify(pid)
  if (identity === undefined || !stdin || !stdout || !stderr || !(gate instanceof Duplex)) {
    signalGroup(pid, 'SIGKILL')
    for (const pipe of child.stdio) pipe?.destroy()
    throw new Error('the child cannot be identified')
  }
  const pipes = [stdin, stdout, stderr, gate]
  for (const pipe of pipes) pipe.on('error', ignore) // a command may close its ends when it likes
  gate.resume()
  return {
    identity,
    stdin,
    gate,
    stdout: capture(stdout, settings.maxOutputBytes + 1, stdoutTailBytes),
    stderr: capture(stderr, 0, stderrTailBytes),
    exited,
    closed,
    pipes,
  }
}

// The gate

/** Waits until the command may run; what it returns says why it may not. An abort that came wins. */
async function waitAtGate(
  child: Child,
  signal: AbortSignal,
  abort: Promise<string>,
  hooks: ExecutorHooks,
): Promise<Outcome | undefined> {
  const lost = child.exited.then((exit) => notSent('spawn_failed', { message: 'ended at the gate', ...exit }))
  const refusal = await Promise.race([
    abort.then((code) => notSent(code)),
    lost,
    record(child.identity, hooks),
  ])
  return signal.aborted ? notSent(await abort) : refusal
}

async function record(identity: ChildIdentity, hooks: ExecutorHooks): Promise<Outcome | undefined> {
  try {
    await hooks.childStarted(identity)
    return undefined
  } catch (error) {
    return notSent('not_recorded', { message: messageOf(error) })
  }
}

/** Ends a child whose gate stays shut: nothing of the command has run. */
async function dismiss(child: Child, refusal: Outcome): Promise<Outcome> {
  child.gate.destroy()
  signalGroup(child.identity.group, 'SIGKILL')
  await within(child.exited, reapMs)
  return refusal
}

// Supervision

interface Ending {
  /** Absent when even SIGKILL did not end it in time. */
  readonly exit?: Exit
  /** Why it was made to end, when it did not end by itself. */
  readonly cutShort?: string
}

async function supervise(child: Child, abort: Promise<string>, killGraceMs: number): Promise<Ending> {
  const cutShort = await Promise.race([child.exited.then(() => undefined), abort])
  if (cutShort !== undefined) await endTree(child.identity, killGraceMs)
  const exit = await (cutShort === undefined ? child.exited : within(child.exited, reapMs))
  await within(child.closed, drainMs)
  return { ...(exit && { exit }), ...(cutShort !== undefined && { cutShort }) }
}

function watchAbort(signal: AbortSignal): { happened: Promise<string>; dispose(): void } {
  let dispose = ignore
  const happened = new Promise<string>((resolve) => {
    const tell = () => resolve(isTimeout(signal.reason) ? 'timed_out' : 'aborted')
    if (signal.aborted) return tell()
    signal.addEventListener('abort', tell, { once: true })
    dispose = () => signal.removeEventListener('abort', tell)
  })
  return { happened, dispose: () => dispose() }
}

/** What the promise brings, or undefined when it takes longer. */
async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  const timer = new AbortController()
  const expired = sleep(ms, undefined, { signal: timer.signal }).catch(ignore)
  try {
    return (await Promise.race([promise, expired])) ?? undefined
  } finally {
    timer.abort()
  }
}

// Output

function outcomeOf({ exit, cutShort }: Ending, child: Child, settings: Settings): Outcome {
  if (exit?.exitCode === EXIT_DONE) return { kind: 'result', result: resultText(child.stdout, settings) }
  const errorJson = JSON.stringify({
    ...(exit?.signal ? { signal: exit.signal } : { exitCode: exit?.exitCode ?? null }),
    stderr: child.stderr.tail(),
    stdout: child.stdout.tail(),
  })
  const errorCode = exit?.signal ? `signal_${exit.signal}` : `exit_${exit?.exitCode}`
  if (exit?.exitCode === EXIT_DATAERR) return { kind: 'terminal', errorCode, errorJson }
  if (exit?.exitCode === EXIT_TEMPFAIL) return { kind: 'not_sent', errorCode, errorJson }
  return unknown(cutShort ?? errorCode, errorJson)
}

/** As much of stdout as both limits allow. Escapes make JSON longer than its bytes, so it may take turns. */
function resultText(stdout: Capture, { maxOutputBytes, maxResultBytes }: Settings): string {
  const head = stdout.head()
  for (let limit = maxOutputBytes; ; ) {
    const kept = wholeCharacters(head, limit)
    const text = JSON.stringify({ exitCode: 0, ...stdoutFields(kept, stdout.total()) })
    const bytes = Buffer.byteLength(text)
    if (bytes <= maxResultBytes || kept.length === 0) return text
    limit = Math.floor(kept.length * Math.min(0.95, maxResultBytes / bytes))
  }
}

function notSent(errorCode: string, detail?: object): Outcome {
  return { kind: 'not_sent', errorCode, ...(detail && { errorJson: JSON.stringify(detail) }) }
}

function unknown(errorCode: string, errorJson: string): Outcome {
  return { kind: 'outcome_unknown', errorCode, errorJson }
}

function ignore(): void {}
