import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { HoldfastError } from '../contract/errors.js'
import type { MessageInput } from '../contract/message.js'
import { ended } from './checker/evidence.js'
import { check } from './checker/index.js'
import type { Final } from './checker/words.js'
import { type Crashed, checkEffects } from './crash-effects.js'
import type { CrashedDelivery, CrashProcess, CrashRun, Said } from './crash-words.js'
import { readFinal } from './final.js'
import { openHistory, readEarlier } from './history.js'
import { openTestParts, type TestParts, testHost } from './record.js'

const lookEveryMs = 20
const endWithinMs = 15_000
const startWithinMs = 20_000

/** What all runs of a test have in common. */
export interface RunOptions {
  /** The file that Node runs as a node of the handler. */
  readonly program: string
  readonly handler: string
  readonly messages: readonly Partial<MessageInput>[]
  readonly effects: ((delivery: CrashedDelivery) => number | Promise<number>) | undefined
  readonly env: Readonly<Record<string, string>>
  readonly execArgv: readonly string[]
  readonly deadlineMs: number
}

/** A run, and every point that its processes came to, in the order in which each was reached first. */
export interface RunResult {
  readonly run: CrashRun
  readonly points: readonly string[]
}

/** One run on a record of its own. With no point nobody is killed. */
export async function runWithCrash(options: RunOptions, point?: string): Promise<RunResult> {
  const parts = await openTestParts({ settings: { heartbeat_ms: 200 } })
  const closing: (() => void)[] = []
  try {
    return await crash(parts, options, point, closing)
  } finally {
    for (const close of closing) close()
    await parts.record.close()
  }
}

async function crash(
  parts: TestParts,
  options: RunOptions,
  point: string | undefined,
  closing: (() => void)[],
): Promise<RunResult> {
  const { record, keys, reader } = parts
  const dir = join(record.dir, 'history')
  mkdirSync(dir)
  const conductor = openHistory(dir, 'conductor', 'crash')
  const phase = (name: string) => conductor.write({ kind: 'phase', phase: name })
  const start = (killAt?: string) => startProcess(parts, options, dir, killAt, closing)

  phase('load')
  const sent = await send(parts, options.messages, dir)
  let running = await start(point)
  let isSettled = await settled(parts, running, dir, options.deadlineMs)
  // It may come to its point on the way out, too.
  await running.stop()
  phase('heal')
  const reached = running.endedBy() === 'SIGKILL'
  if (reached) {
    running = await start()
    isSettled = await settled(parts, running, dir, options.deadlineMs)
    await running.stop()
  }
  phase('final')
  conductor.write({ kind: 'settled', settled: isSettled, isMoving: false })
  conductor.close()

  const final = await readFinal(record.hub, reader, keys)
  writeFileSync(join(dir, 'final.json'), JSON.stringify(final))
  const lines = readEarlier(dir, 'node', testHost)
  const verdict = check(dir, { probe: running.probe && couldTell(dir, running.pid), leastPerSecond: 0 })
  const effects = await checkEffects(deliveriesOf(final, sent, record.dir), options.effects)
  // A handler that never ends well breaks no promise: how much is executed is a rule for fleets.
  const promises = verdict.violations.filter(({ invariant }) => invariant !== 'rate')
  const violations = [...promises, ...effects]
  const points = lines.flatMap((line) => (line.kind === 'point' ? [String(line['point'])] : []))
  return {
    points: [...new Set(points)],
    run: {
      point: point ?? 'none',
      reached: point === undefined || reached,
      executions: readEarlier(dir, 'marks', testHost).filter(({ type }) => type === 'begin').length,
      unknown: final.unknown.map(({ id }) => id),
      verdict: { ...verdict, ok: violations.length === 0, violations },
    },
  }
}

/**
 * A probe that could not tell leaves unknown what it was asked about, and nobody was asked yet about what threw in the
 * last process: nothing is wrong with that.
 */
function couldTell(dir: string, lastPid: number): boolean {
  const answers = readEarlier(dir, 'node', testHost).map((line) => line['answer'])
  const threw = readEarlier(dir, 'marks', testHost).filter((line) => line['outcome'] === 'outcome_unknown')
  return !answers.includes('unknown') && !threw.some((line) => line['pid'] === lastPid)
}

type Sent = ReadonlyMap<string, Pick<CrashedDelivery, 'key' | 'payload'>>

/** Accepts every message, and writes down what was asked and answered. */
async function send(
  { record }: TestParts,
  messages: readonly Partial<MessageInput>[],
  dir: string,
): Promise<Sent> {
  const producer = openHistory(dir, 'producer', 'crash')
  const sent = new Map<string, Pick<CrashedDelivery, 'key' | 'payload'>>()
  for (const [at, message] of messages.entries()) {
    const { key = `crash-${at + 1}`, conversation = 'test', payload = 'test' } = message
    const to = message.to ?? [{ host: testHost }]
    const digest = createHash('sha256').update(payload).digest('hex')
    const op = String(at + 1)
    producer.write({ kind: 'accept', op, type: 'invoke', key, conversation, to, digest })
    const { id, deliveries } = await record.send({ ...message, key, conversation, to, payload })
    producer.write({ kind: 'accept', op, type: 'ok', key, id, deliveries })
    sent.set(id, { key, payload: payload.toString() })
  }
  producer.close()
  return sent
}

function deliveriesOf({ deliveries }: Final, sent: Sent, dir: string): Crashed[] {
  return deliveries.flatMap(({ id, message, attempts }) => {
    const of = sent.get(message)
    if (of === undefined) return []
    const status = attempts.at(-1)?.status ?? 'none'
    const delivery = { ...of, id, attempts: attempts.map(({ number }) => `${id}/${number}`), status, dir }
    return [{ delivery, ends: attempts.map(ended) }]
  })
}

/** A process of the handler's node. */
interface Running {
  readonly pid: number
  readonly probe: boolean
  readonly idempotent: boolean
  /** The signal or exit code it ended by; undefined while it runs. */
  endedBy(): NodeJS.Signals | number | undefined
  /** Lets it leave. */
  stop(): Promise<void>
  /** The last that it said on stderr. */
  complaint(): string
}

async function startProcess(
  { record }: TestParts,
  { program, handler, env, execArgv }: RunOptions,
  history: string,
  killAt: string | undefined,
  closing: (() => void)[],
): Promise<Running> {
  const options: CrashProcess = {
    handler,
    history,
    redis: record.redis,
    hub: record.name,
    host: testHost,
    mirror: join(record.dir, 'node.db'),
    killAt,
  }
  const child = spawn(process.execPath, [...execArgv, program, JSON.stringify(options)], {
    env: { ...process.env, ...env, HOLDFAST_CRASH_DIR: record.dir },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let ended: NodeJS.Signals | number | undefined
  let complaint = ''
  child.stderr?.on('data', (bytes: Buffer) => {
    complaint = `${complaint}${bytes}`.slice(-2000)
  })
  const end = new Promise<void>((resolve) => {
    child.once('close', (code, signal) => {
      ended = signal ?? code ?? 0
      resolve()
    })
  })
  // It outlives nobody: where the run breaks off, its record is closed under it.
  closing.push(() => void child.kill('SIGKILL'))
  const said = await firstWord(child, end)
  // Killed before it could say anything, where the point comes that early.
  if (said === undefined && ended !== 'SIGKILL') throw failed(ended, complaint)
  return {
    pid: child.pid ?? 0,
    probe: said?.probe ?? false,
    idempotent: said?.idempotent ?? false,
    endedBy: () => ended,
    complaint: () => complaint,
    stop: async () => {
      if (ended !== undefined) return
      child.kill('SIGTERM')
      if ((await withinMs(endWithinMs, end)) !== 'late') return
      child.kill('SIGKILL')
      throw new HoldfastError('DEADLINE_EXCEEDED', `the handler's process did not leave in ${endWithinMs} ms`)
    },
  }
}

/** What it says once it has joined; undefined when it ended before. */
async function firstWord(child: ChildProcess, end: Promise<void>): Promise<Said | undefined> {
  const word = new Promise<Said>((resolve) => child.once('message', (said) => resolve(said as Said)))
  const said = await withinMs(startWithinMs, Promise.race([word, end.then(() => undefined)]))
  if (said !== 'late') return said
  child.kill('SIGKILL')
  throw new HoldfastError('DEADLINE_EXCEEDED', `the handler's process did not join in ${startWithinMs} ms`)
}

/** What a promise resolves with, or `late`. No timer is left behind. */
async function withinMs<Value>(ms: number, promise: Promise<Value>): Promise<Value | 'late'> {
  const over = new AbortController()
  const timer = sleep(ms, 'late' as const, { signal: over.signal, ref: false })
  try {
    return await Promise.race([promise, timer])
  } finally {
    over.abort()
    timer.catch(() => undefined)
  }
}

function failed(ended: NodeJS.Signals | number | undefined, complaint: string): HoldfastError {
  const how = `the handler's process ended by itself (${ended})`
  return new HoldfastError('INVALID_ARGUMENT', `${how}: ${complaint.trim() || 'it said nothing'}`)
}

/** Waits until nothing is left to do but what nobody knows, or the process is killed, or the time is up: false then. */
async function settled(
  { record, functions }: TestParts,
  running: Running,
  dir: string,
  deadlineMs: number,
): Promise<boolean> {
  const deadlineAt = performance.now() + deadlineMs
  while (running.endedBy() === undefined) {
    const { queued, claimed, mirrored, awaiting, owed } = await functions.tally()
    if (queued + claimed + mirrored + owed === 0) {
      const unknown = (await record.hub.unknown()).map(({ id }) => id)
      if (awaiting === unknown.length && areLeft(unknown, running, dir)) return true
    }
    if (performance.now() > deadlineAt) return false
    await sleep(lookEveryMs)
  }
  if (running.endedBy() !== 'SIGKILL') throw failed(running.endedBy(), running.complaint())
  return false
}

/** Whether the process is done with what is unknown: asked of its probe in vain, or run by it without an outcome. */
function areLeft(unknown: readonly string[], { pid, probe, idempotent }: Running, dir: string): boolean {
  if (unknown.length === 0 || !(probe || idempotent)) return true
  const left = new Set(
    [
      ...(idempotent
        ? []
        : readEarlier(dir, 'node', testHost).filter((line) => line['answer'] === 'unknown')),
      ...readEarlier(dir, 'marks', testHost).filter((line) => line['outcome'] === 'outcome_unknown'),
    ].flatMap((line) => (line['pid'] === pid ? [line['attempt']] : [])),
  )
  return unknown.every((id) => left.has(id))
}
