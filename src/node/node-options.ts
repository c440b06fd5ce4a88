import { HoldfastError } from '../contract/errors.js'
import { hostId, hubName, printableId } from '../contract/ids.js'
import type { OnPoint } from '../contract/points.js'
import type { ExecuteFunction, Executor } from './executor.js'
import { functionExecutor } from './executors/function.js'
import type { NodeLog } from './log.js'

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

/** The options of a node, checked and completed. */
export interface NodeSettings {
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

/** Checks every option. @throws INVALID_ARGUMENT */
export function checkOptions(options: NodeOptions): NodeSettings {
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

const defaults = { concurrency: 8, timeLimitMs: 300_000, graceMs: 5000, drainMs: 30_000 }

/** Timers take no more than this. */
const longestTimer = 2_147_483_647

function positive(name: string, value: number): number {
  if (Number.isInteger(value) && value > 0 && value <= longestTimer) return value
  throw new HoldfastError(
    'INVALID_ARGUMENT',
    `${name} must be a whole number from 1 to ${longestTimer}, not ${value}`,
  )
}
