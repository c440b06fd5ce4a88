import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { MessageInput } from '../../src/contract/message.js'
import type { Point } from '../../src/contract/points.js'
import { until } from './until.js'

/** A signal that a process sends itself at a named point, the n-th time it is reached (the first when absent). */
export interface SignalAt {
  readonly point: Point
  readonly nth?: number | undefined
  readonly signal: 'SIGKILL' | 'SIGSTOP'
}

export interface NodeProcessOptions {
  readonly redis: string
  readonly hub?: string
  readonly hubs?: readonly string[]
  readonly host: string
  readonly node?: string
  readonly mirror: string
  /** File that gets the begin and end marks of the handler. */
  readonly marks: string
  readonly at?: SignalAt | undefined
  /** Between its two marks the handler sends its process this signal. */
  readonly inHandler?: 'SIGKILL' | 'SIGSTOP' | undefined
  /** The handler waits for the line `go`. */
  readonly gated?: boolean
  readonly handlerMs?: number
  /** So many attempts answer `not_sent` before anything runs. */
  readonly notSentTimes?: number
  readonly idempotent?: boolean
  /** A shell command instead of the handler. */
  readonly exec?: string
  readonly concurrency?: number
  readonly buffer?: number
}

export interface EffectsProcessOptions {
  readonly redis: string
  readonly hub: string
  /** The name under which it executes. */
  readonly executor: string
  /** File that gets one line for each execution: the effect's id. */
  readonly marks: string
}

/** One effect that such a process runs; the line it answers has `outcome` or `threw`. */
export interface RunEffect {
  readonly run: string
  readonly payload?: unknown
  readonly timeLimitMs?: number
  /** How long the process watches it before it takes it over; 0 when absent. */
  readonly recoveryAgeMs?: number
  readonly idempotent?: boolean
  readonly probeSays?: 'result' | 'not_executed' | 'unknown'
  /** The row as it was seen: it is taken over with that, without the SDK and without a time limit. */
  readonly takeOver?: { readonly epoch: number; readonly startedAt: number }
  /** What `execute` does once it has left its mark; a result when absent. */
  readonly then?: 'throw' | 'not_sent'
  /** A signal that the process sends itself: when the effect is its own, and has its mark, and while it probes. */
  readonly at?: { readonly point: 'owned' | 'marked' | 'probing'; readonly signal: 'SIGKILL' | 'SIGSTOP' }
}

export interface HubProcessOptions {
  readonly redis: string
  readonly hub: string
  /** Absent: it only completes what is owed. */
  readonly message?: MessageInput | undefined
  readonly at?: SignalAt | undefined
}

export interface SupervisorProcessOptions {
  readonly redis: string
  /** Name of the hub. */
  readonly record: string
  readonly session: string
  readonly host: string
  readonly scope: string
  readonly restartBudget: number
  readonly command: readonly string[]
  readonly stateFile: string
  readonly restartBackoff?: { readonly leastMs: number; readonly mostMs: number }
  readonly stopGraceMs?: number
}

/** One line of JSON that a process printed. */
export type Line = Readonly<Record<string, unknown>>

export interface Child {
  readonly pid: number
  readonly lines: readonly Line[]
  /** Resolves with the first line that has the member (with this value, when one is given). */
  line(member: string, value?: unknown): Promise<Line>
  send(text: string): void
  /** Runs an effect in an effects process; one at a time of an id. Resolves with its answer. */
  ask(command: RunEffect): Promise<Line>
  signal(signal: NodeJS.Signals): void
  /** Once it has stopped itself, it is continued: it says so before it stops, and would stop after that for good. */
  goOn(): Promise<void>
  /** The signal it ended by, or its exit code. */
  readonly ended: Promise<NodeJS.Signals | number | null>
  kill(): Promise<void>
}

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Ends every child that still runs. For afterEach. */
export async function killChildren(): Promise<void> {
  await Promise.all(
    [...running].map(
      (child) =>
        new Promise<void>((resolve) => {
          child.once('exit', () => resolve())
          child.kill('SIGKILL')
        }),
    ),
  )
}

export function startNodeProcess(options: NodeProcessOptions): Child {
  return start('node-process.mjs', options)
}

export function startHubProcess(options: HubProcessOptions): Child {
  return start('hub-process.mjs', options)
}

export function startSupervisorProcess(options: SupervisorProcessOptions): Child {
  return start('supervisor-process.mjs', options)
}

export function startEffectsProcess(options: EffectsProcessOptions): Child {
  return start('effects-process.mjs', options)
}

/** Scheduled sweeps over a hub. */
export function startSweeperProcess(options: { redis: string; hub: string; lockMs: number }): Child {
  return start('sweeper-process.mjs', options)
}

function start(script: string, options: object): Child {
  const path = fileURLToPath(new URL(script, import.meta.url))
  const child = spawn(process.execPath, [path, JSON.stringify(options)], { stdio: 'pipe' })
  const lines: Line[] = []
  const asked = new Map<unknown, { answer(line: Line): void; fail(error: Error): void }>()
  let errors = ''
  let over = false
  running.add(child)
  const ended = new Promise<NodeJS.Signals | number | null>((resolve) => {
    // `close` comes when its output has been read to the end.
    child.once('close', (code, signal) => {
      running.delete(child)
      over = true
      for (const { fail } of asked.values()) fail(new Error(`${script} ended before it answered. ${errors}`))
      resolve(signal ?? code)
    })
  })
  createInterface({ input: child.stdout }).on('line', (text) => {
    const line = JSON.parse(text) as Line
    lines.push(line)
    asked.get(line['answered'])?.answer(line)
  })
  child.stderr.on('data', (bytes: Buffer) => {
    errors += bytes.toString()
  })
  child.stdin.on('error', () => undefined)
  if (child.pid === undefined) throw new Error(`${script} did not start`)

  return {
    pid: child.pid,
    lines,
    line: async (member, value) => {
      const wanted = (line: Line) => member in line && (value === undefined || line[member] === value)
      const what = `${script} saying ${member} ${value ?? ''}`
      const line = await until(() => lines.find(wanted) ?? (over ? { over } : undefined), {
        timeoutMs: 30_000,
        what,
      })
      if ('over' in line) throw new Error(`${what}: it ended instead. ${errors}`)
      return line
    },
    send: (text) => void child.stdin.write(`${text}\n`),
    ask: (command) =>
      new Promise((answer, fail) => {
        asked.set(command.run, { answer, fail })
        child.stdin.write(`${JSON.stringify(command)}\n`)
      }),
    signal: (signal) => void child.kill(signal),
    goOn: async () => {
      await until(() => isStopped(child.pid), { what: `${script} stopping` })
      child.kill('SIGCONT')
    },
    ended,
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

function isStopped(pid: number | undefined): boolean {
  return / T /.test(readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\)/, ''))
}

/** What a handler wrote outside the record. Times are of one monotonic clock, in microseconds. */
export interface Mark {
  readonly what: 'begin' | 'end'
  readonly attempt: string
  readonly delivery: string
  readonly pid: number
  readonly at: number
}

export function readMarks(file: string): Mark[] {
  const text = readFileSync(file, 'utf8')
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Mark)
}
