import { join } from 'node:path'
import { z } from 'zod'
import {
  checkOptions,
  hubAddress,
  hubSet,
  name,
  objectWith,
  option,
  optionsOf,
  redisAddress,
  text,
  together,
  valueThat,
} from '../contract/options.js'
import type { OnPoint } from '../contract/points.js'
import type { RedisAddress } from '../contract/redis-address.js'
import type { ExecuteFunction, Executor, ProbeFunction, Prober } from './executor.js'
import { functionExecutor } from './executors/function.js'
import type { NodeLog } from './log.js'
import { functionProbe } from './probes/function.js'
import type { HubAddress } from './transports/http.js'

export type { HubAddress } from './transports/http.js'

/** Options of {@link createNode}, but for where the record is and what handles a delivery. */
export interface NodeBasics {
  /** The recipient host whose stream this node consumes. */
  readonly host: string
  /** Its id, stable across restarts; the host's name when absent. Two nodes of a host need two. */
  readonly node?: string | undefined
  /** Name of the hub; `hf` when absent. */
  readonly hub?: string | undefined
  /**
   * Instead of `hub`: the names of a set. The node works on all of them, fairly, within one `concurrency`. A set of one
   * is `hub` with another name.
   */
  readonly hubs?: readonly string[] | undefined
  /**
   * File of this node's durable store; one process at a time can open it. In a node of several hubs, the folder of such
   * files, one a hub: `<hub>.db`.
   */
  readonly mirror: string
  /**
   * Asks what became of an attempt that an earlier process of this node began and did not settle, before
   * anything of it is repeated, and only once nothing of that process can act any more.
   */
  readonly probe?: ProbeFunction | Prober | undefined
  /**
   * The handler does the same when it runs twice for one attempt (by its id): what an earlier process began and a
   * probe cannot tell of is begun again, under the same attempt.
   */
  readonly idempotent?: boolean | undefined
  /** Milliseconds that a probe may take; 30,000 when absent. */
  readonly probeTimeLimitMs?: number | undefined
  /** Lanes executed at the same time, of all hubs together; 8 when absent. */
  readonly concurrency?: number | undefined
  /**
   * Runnable deliveries held at most; four times `concurrency`, but 32 at most, or `concurrency` where that is more, when
   * absent. Of several hubs all together, beside what each may always hold: its part of the lanes, and no less than two.
   */
  readonly buffer?: number | undefined
  /** Milliseconds that a handler may take before its signal is aborted; 300,000 when absent. */
  readonly timeLimitMs?: number | undefined
  /** Milliseconds that an aborted handler may take to say what it did, before it is unknown; 5,000 when absent. */
  readonly graceMs?: number | undefined
  /** Milliseconds that `stop` waits for running handlers before it aborts them; 30,000 when absent. */
  readonly drainMs?: number | undefined
  /** Directories of the sessions this node may serve. */
  readonly scopes?: readonly string[] | undefined
  /** A pino logger, or anything with its four methods; nothing is logged when absent. */
  readonly log?: NodeLog | undefined
  /** Where the Lua sources are; the package's own when absent. */
  readonly luaDir?: string | undefined
  /** Tests only: see `points`. */
  readonly onPoint?: OnPoint | undefined
}

/** The record of a node outside the trust boundary. */
export interface OverHttp {
  /**
   * A hub over HTTP, with the principal of this host. Of several hubs, the address that all of them are served at, each at
   * `/hubs/<name>` below it.
   */
  readonly http: HubAddress
  readonly redis?: undefined
}

/** The record of a node inside the trust boundary. */
export interface OnRedis {
  /** URL of the server, Sentinels or Cluster that hold the record. */
  readonly redis: RedisAddress
  readonly http?: undefined
}

/** Deliveries are handled by something else than a function. */
export interface ByExecutor {
  /** `commandExecutor`, `forwardExecutor`, or one of your own. */
  readonly executor: Executor
  readonly execute?: undefined
}

/** Deliveries are handled by a function in this process. */
export interface ByFunction {
  /** The handler: what it returns is the result, what it throws is `outcome_unknown`. */
  readonly execute: ExecuteFunction
  readonly executor?: undefined
}

/** Options of {@link createNode}: one of `redis` and `http`, one of `execute` and `executor`, and the rest. */
export type NodeOptions = NodeBasics & (OverHttp | OnRedis) & (ByExecutor | ByFunction)

/** The options of a node, checked and completed. */
export interface NodeSettings {
  readonly host: string
  readonly node: string
  readonly hub: string
  /** Other hubs are served beside it. */
  readonly inSet: boolean
  /** A file; a folder in the settings of a node of several hubs. */
  readonly mirror: string
  readonly concurrency: number
  readonly buffer: number
  readonly timeLimitMs: number
  readonly graceMs: number
  readonly drainMs: number
  readonly executor: Executor
  readonly prober: Prober | undefined
  readonly idempotent: boolean
  readonly probeTimeLimitMs: number
  readonly reach: Reach
}

/** How the node reaches the record. */
export type Reach = { readonly redis: RedisAddress } | { readonly http: HubAddress }

const form = optionsOf<NodeOptions>({
  host: name.host,
  node: name.id.optional(),
  hub: name.hub.optional(),
  hubs: hubSet.optional(),
  redis: redisAddress.optional(),
  http: z.strictObject(hubAddress).optional(),
  mirror: text('the path of a file'),
  execute: option.function.optional(),
  executor: objectWith('an executor, which has a method run', ['run']).optional(),
  probe: valueThat('a function, or a prober, which has a method ask', isProbe).optional(),
  idempotent: option.flag,
  probeTimeLimitMs: option.count,
  concurrency: option.count,
  buffer: option.count,
  timeLimitMs: option.count,
  graceMs: option.count,
  drainMs: option.count,
  scopes: z.array(z.string()).optional(),
  log: option.log,
  luaDir: z.string().optional(),
  onPoint: option.function.optional(),
}).check(
  together<NodeOptions>(({ redis, http }) => oneOf({ redis, http })),
  together<NodeOptions>(({ execute, executor }) => oneOf({ execute, executor })),
  together<NodeOptions>(({ hub, hubs }) => (hub === undefined ? undefined : oneOf({ hub, hubs }))),
)

/** Checks every option, and completes them. @throws INVALID_ARGUMENT, naming all that is wrong */
export function checkedOptions(options: NodeOptions): NodeSettings {
  checkOptions('createNode', form, options)
  const { host, probe, concurrency = defaults.concurrency } = options
  const [hub = defaults.hub] = hubsOf(options)
  return {
    host,
    node: options.node ?? host,
    hub,
    inSet: false,
    mirror: options.mirror,
    concurrency,
    buffer: options.buffer ?? bufferFor(concurrency),
    timeLimitMs: options.timeLimitMs ?? defaults.timeLimitMs,
    graceMs: options.graceMs ?? defaults.graceMs,
    drainMs: options.drainMs ?? defaults.drainMs,
    executor: options.executor ?? functionExecutor(options.execute),
    prober: typeof probe === 'function' ? functionProbe(probe) : probe,
    idempotent: options.idempotent === true,
    probeTimeLimitMs: options.probeTimeLimitMs ?? defaults.probeTimeLimitMs,
    reach: options.redis === undefined ? { http: options.http } : { redis: options.redis },
  }
}

/** The hubs of a node, one or several. */
export function hubsOf({ hub, hubs }: NodeOptions): readonly string[] {
  return hubs ?? [hub ?? defaults.hub]
}

/** The settings of one member of a node of several hubs: those of the node, but for its hub, its file and its address. */
export function memberSettings(settings: NodeSettings, hub: string): NodeSettings {
  const { reach } = settings
  return {
    ...settings,
    hub,
    inSet: true,
    mirror: join(settings.mirror, `${hub}.db`),
    reach: 'http' in reach ? { http: { ...reach.http, url: hubUrl(reach.http.url, hub) } } : reach,
  }
}

function hubUrl(url: string, hub: string): string {
  return `${url.replace(/\/+$/, '')}/hubs/${hub}`
}

/**
 * What waits in a node with many lanes costs a begin of its own, where what finds a place is begun with its handoff; few
 * lanes would run dry between two claims.
 */
function bufferFor(concurrency: number): number {
  return Math.max(concurrency, Math.min(4 * concurrency, defaults.bufferOfFew))
}

/** Of two options exactly one is given. */
function oneOf(two: Readonly<Record<string, unknown>>): string | undefined {
  const given = Object.values(two).filter((value) => value !== undefined).length
  if (given === 1) return undefined
  const names = Object.keys(two).map((each) => `\`${each}\``)
  return `takes ${names.join(' or ')}, and ${given === 0 ? 'neither is' : 'both are'} given`
}

function isProbe(value: unknown): boolean {
  if (typeof value === 'function') return true
  return typeof value === 'object' && value !== null && 'ask' in value && typeof value.ask === 'function'
}

const defaults = {
  hub: 'hf',
  concurrency: 8,
  bufferOfFew: 32,
  timeLimitMs: 300_000,
  graceMs: 5000,
  drainMs: 30_000,
  probeTimeLimitMs: 30_000,
}
