import { backoffMs } from '../contract/backoff.js'
import { HoldfastError, isHoldfastError } from '../contract/errors.js'
import { hostId, hubName, printableId } from '../contract/ids.js'
import { aroundCall, type OnPoint } from '../contract/points.js'
import type { BeginItem, JoinReply, NodeIdentity, ReportItem, StepResult } from '../contract/steps.js'
import { createAttempts } from './attempts.js'
import { createBatcher } from './batcher.js'
import { createClaimLoop } from './claim-loop.js'
import type { ExecuteFunction, Executor } from './executor.js'
import { functionExecutor } from './executors/function.js'
import { createHandoff } from './handoff.js'
import { createHeartbeats } from './heartbeats.js'
import { createLanes } from './lanes.js'
import { type NodeLog, silentLog } from './log.js'
import { type Mirror, openMirror } from './mirror.js'
import { createPersistence } from './persistence.js'
import { treeAlive } from './process-identity.js'
import { createReports } from './reports.js'
import type { NodeTransport } from './transport.js'
import { openRedisTransport } from './transports/redis.js'

/** Options of {@link createNode}. One of `execute` and `executor` is given. */
export interface NodeOptions {
  /** The recipient host whose stream this node consumes. */
  readonly host: string
  /** Stable across restarts; the host's name when absent. Two nodes of a host need two. */
  readonly node?: string | undefined
  /** `hf` when absent. */
  readonly hub?: string | undefined
  /** URL of the Redis server that holds the record. */
  readonly redis: string
  /** File of this node's durable store; one process at a time can open it. */
  readonly mirror: string
  /** The handler: what it returns is the result, what it throws is `outcome_unknown`. */
  readonly execute?: ExecuteFunction | undefined
  readonly executor?: Executor | undefined
  /** Lanes executed at the same time; 8 when absent. */
  readonly concurrency?: number | undefined
  /** Runnable deliveries held at most; four for each lane when absent. */
  readonly buffer?: number | undefined
  /** Milliseconds a handler may take; then its signal is aborted. Five minutes when absent. */
  readonly timeLimitMs?: number | undefined
  /** Milliseconds an aborted handler may take to prove what it did; 5,000 when absent. */
  readonly graceMs?: number | undefined
  /** Milliseconds that `stop` waits for running handlers before it aborts them; 30,000 when absent. */
  readonly drainMs?: number | undefined
  /** Directories of the sessions this node may serve. */
  readonly scopes?: readonly string[] | undefined
  /** A pino logger, or anything with its four methods. */
  readonly log?: NodeLog | undefined
  /** Where the Lua sources are; the package's own when absent. */
  readonly luaDir?: string | undefined
  /** Tests only: see `points`. */
  readonly onPoint?: OnPoint | undefined
}

/** How a node ended. `failed`: superseded, or its mirror or the record refused to go on. */
export type NodeEnd = { readonly kind: 'left' } | { readonly kind: 'failed'; readonly error: Error }

export interface HoldfastNode {
  readonly host: string
  readonly node: string
  /**
   * Opens the mirror, joins, reports what an earlier process left, and begins to work. Waits for a server
   * that is not there yet.
   * @throws MIRROR_LOCKED, MIRROR_UNUSABLE, MIRROR_CLONED, SUPERSEDED, STORE_UNKNOWN, INVALID_ARGUMENT
   */
  start(): Promise<void>
  /** Claims nothing more, lets handlers finish (aborts them after `drainMs`), leaves, and closes. */
  stop(): Promise<void>
  /** Resolves when the node has ended, by `stop` or by an error. */
  readonly closed: Promise<NodeEnd>
}

const defaults = { concurrency: 8, timeLimitMs: 300_000, graceMs: 5000, drainMs: 30_000 }
const batchAtMost = 100
const startRetry = { leastMs: 100, mostMs: 2000 }

/** A node (contract sections 3 and 8). Does nothing until it is started. @throws INVALID_ARGUMENT */
export function createNode(options: NodeOptions): HoldfastNode {
  const settings = check(options)
  const log = options.log ?? silentLog
  const starting = new AbortController()
  let running: Running | undefined
  let opened: Promise<Running> | undefined
  let end: (how: NodeEnd) => void = () => undefined
  const closed = new Promise<NodeEnd>((resolve) => {
    end = resolve
  })

  async function open(): Promise<Running> {
    const mirror = openMirror({
      file: options.mirror,
      host: settings.host,
      node: settings.node,
      hub: settings.hub,
    })
    try {
      const transport = await openTransport(settings.hub, options, log, starting.signal)
      return await startWork({ options, settings, log, mirror, transport, end })
    } catch (error) {
      await mirror.close()
      throw error
    }
  }

  return {
    host: settings.host,
    node: settings.node,
    closed,
    start: async () => {
      opened ??= open()
      running = await opened
    },
    stop: async () => {
      starting.abort(new Error('stopped'))
      running ??= await opened?.catch(() => undefined)
      await running?.stop()
      end({ kind: 'left' })
    },
  }
}

interface Settings {
  readonly host: string
  readonly node: string
  readonly hub: string
  readonly concurrency: number
  readonly buffer: number
  readonly timeLimitMs: number
  readonly graceMs: number
  readonly drainMs: number
  readonly executor: Executor
}

function check(options: NodeOptions): Settings {
  const { execute } = options
  const executor = options.executor ?? (execute === undefined ? undefined : functionExecutor(execute))
  if (executor === undefined) {
    throw new HoldfastError('INVALID_ARGUMENT', 'a node needs `execute` or `executor`; neither is given')
  }
  const concurrency = positive('concurrency', options.concurrency ?? defaults.concurrency)
  return {
    host: hostId(options.host),
    node: printableId(options.node ?? options.host, 'node'),
    hub: hubName(options.hub ?? 'hf'),
    concurrency,
    buffer: positive('buffer', options.buffer ?? 4 * concurrency),
    timeLimitMs: positive('timeLimitMs', options.timeLimitMs ?? defaults.timeLimitMs),
    graceMs: positive('graceMs', options.graceMs ?? defaults.graceMs),
    drainMs: positive('drainMs', options.drainMs ?? defaults.drainMs),
    executor,
  }
}

/** Timers take no more than this. */
const longestTimer = 2_147_483_647

function positive(name: string, value: number): number {
  if (Number.isInteger(value) && value > 0 && value <= longestTimer) return value
  throw new HoldfastError(
    'INVALID_ARGUMENT',
    `${name} must be a whole number from 1 to ${longestTimer}, not ${value}`,
  )
}

async function openTransport(
  hub: string,
  options: NodeOptions,
  log: NodeLog,
  signal: AbortSignal,
): Promise<NodeTransport> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await openRedisTransport({ redis: options.redis, hub, luaDir: options.luaDir })
    } catch (error) {
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE') || signal.aborted) throw error
      log.warn({ error: error.message, failures }, 'no server yet')
      await pause(backoffMs(startRetry, failures), signal)
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

interface Running {
  stop(): Promise<void>
}

interface Parts {
  readonly options: NodeOptions
  readonly settings: Settings
  readonly log: NodeLog
  readonly mirror: Mirror
  readonly transport: NodeTransport
  end(how: NodeEnd): void
}

/** Joins, concludes what an earlier process left, and starts the loops. */
async function startWork(parts: Parts): Promise<Running> {
  const { options, settings, log, mirror, transport } = parts
  const { onPoint } = options
  const who: NodeIdentity = { host: settings.host, node: settings.node, incarnation: mirror.incarnation }
  const halt = new AbortController()
  let lastLogId = mirror.lastLogId()
  let progressAt = performance.now()
  let blockedMs = 0
  let failed: Error | undefined

  const join = (): Promise<JoinReply> => transport.join(who, mirror.instance, options.scopes ?? [], lastLogId)
  const persistence = createPersistence({
    log,
    rejoin: join,
    onFatal: (error) => void fail(error),
    halt: halt.signal,
  })

  const beginner = createBatcher<BeginItem, StepResult>(batchAtMost, (items) =>
    persistence.call('begin', () =>
      aroundCall('begin', onPoint, (sending) => transport.begin(who, items, sending)),
    ),
  )
  const reporter = createBatcher<ReportItem, StepResult>(batchAtMost, (items) =>
    persistence.call('report', () =>
      aroundCall('report', onPoint, (sending) => transport.report(who, items, sending)),
    ),
  )
  const reports = createReports({ mirror, report: reporter.submit, log, onPoint })
  const lanes = createLanes({
    concurrency: settings.concurrency,
    run: (work) => attempts.run(work),
    onRoom: () => loop.room(),
  })
  const attempts = createAttempts({
    ...settings,
    mirror,
    reports,
    begin: beginner.submit,
    epochOf: lanes.epochOf,
    log,
    onPoint,
  })
  const handoff = createHandoff({
    mirror,
    lanes,
    log,
    onPoint,
    steps: {
      mirror: (items) =>
        persistence.call('mirror', () =>
          aroundCall('mirror', onPoint, (sending) => transport.mirror(who, items, sending)),
        ),
      ack: (items) =>
        persistence.call('ack', () =>
          aroundCall('ack', onPoint, (sending) => transport.ack(who, items, sending)),
        ),
      refuse: (items) => persistence.call('refuse', () => transport.refuse(who, items)),
    },
  })
  const heartbeats = createHeartbeats({
    beat: async () => {
      const reply = await transport.heartbeat(who, {
        lastLogId,
        progressAgeMs: performance.now() - progressAt,
        blockingMs: blockingSinceLast(),
      })
      await mirror.setLastLogId(lastLogId)
      return reply
    },
    rejoin: join,
    onFatal: (error) => void fail(error),
    log,
  })
  const loop = createClaimLoop({
    buffer: settings.buffer,
    lanes,
    handoff,
    claim: (request, count) =>
      persistence.call('claim', () =>
        aroundCall('claim', onPoint, (sending) => transport.claim(who, request, count, sending)),
      ),
    waitForWork: (position, waitMs, signal) => transport.waitForWork(settings.host, position, waitMs, signal),
    staleAfterMs: heartbeats.staleAfterMs,
    onProgress: (logId) => {
      lastLogId = logId
      progressAt = performance.now()
    },
    onResumed: async () => {
      await mirror.dropCopiesBefore(mirror.incarnation)
    },
    log,
  })

  function blockingSinceLast(): number {
    const total = mirror.stats().totalMs
    const since = total - blockedMs
    blockedMs = total
    return since
  }

  const joined = await firstJoin(join, log)
  log.info({ ...who, storeId: joined.storeId }, 'joined')
  heartbeats.start(joined.heartbeatMs)
  await reports.recover((grant) => grant.children.some(treeAlive))
  const looping = loop.run().catch((error: unknown) => fail(asError(error)))

  /** Ends the node without leaving: its open work is recovered by its next process. */
  async function fail(error: Error): Promise<void> {
    if (failed !== undefined) return
    failed = error
    log.error({ error: error.message }, 'the node ends')
    loop.stop()
    attempts.abort(error.message)
    halt.abort(error)
    await close()
    parts.end({ kind: 'failed', error })
  }

  async function close(): Promise<void> {
    await heartbeats.stop()
    await transport.close()
    await mirror.close()
  }

  async function stop(): Promise<void> {
    if (failed !== undefined) return
    loop.stop()
    const idle = lanes.stop()
    await Promise.race([idle, timeout(settings.drainMs)])
    if (attempts.running() > 0) attempts.abort('the node stops')
    await Promise.race([idle, timeout(settings.graceMs + 2000)])
    await Promise.race([looping, timeout(settings.graceMs)])
    if (attempts.running() === 0 && lanes.running() === 0 && failed === undefined) await leave()
    else log.warn({ handlers: attempts.running() }, 'handlers still run; ended without leaving')
    halt.abort(new Error('stopped'))
    await close()
  }

  async function leave(): Promise<void> {
    try {
      await transport.leave(who)
      log.info({ ...who }, 'left')
    } catch (error) {
      log.warn({ error: String(error) }, 'could not leave; the hub finds out by itself')
    }
  }

  return { stop }
}

/** A server that is away is waited for; a refusal is the caller's to know. */
async function firstJoin(join: () => Promise<JoinReply>, log: NodeLog): Promise<JoinReply> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await join()
    } catch (error) {
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE', 'DEADLINE_EXCEEDED')) throw error
      log.warn({ error: error.message, failures }, 'joining again')
      await pause(backoffMs(startRetry, failures), new AbortController().signal)
    }
  }
}

function timeout(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref()
  })
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
