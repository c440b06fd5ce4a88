import { join } from 'node:path'
import { HoldfastError } from '../contract/errors.js'
import { checkedHubs } from '../contract/hub-set.js'
import { hostId, printableId } from '../contract/ids.js'
import type { OnPoint } from '../contract/points.js'
import type { RedisAddress } from '../contract/redis-address.js'
import type { ExecuteFunction, Executor, ProbeFunction, Prober } from './executor.js'
import { functionExecutor } from './executors/function.js'
import type { NodeLog } from './log.js'
import { functionProbe } from './probes/function.js'

/** A hub over HTTP, and who speaks to it. */
export interface HubAddress {
  /** `http://` or `https://`, with a path when the hub is below one. */
  readonly url: string
  /** Of the principal (`holdfast principal add node --host …`). */
  readonly token?: string | undefined
  /** PEM texts: a CA to trust, and the client certificate that the principal pins. */
  readonly tls?:
    | { readonly ca?: string | Buffer; readonly cert?: string | Buffer; readonly key?: string | Buffer }
    | undefined
}

/** Options of {@link createNode}. One of `redis` and `http` is given, and one of `execute` and `executor`. */
export interface NodeOptions {
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
  /** URL of the server, Sentinels or Cluster that hold the record: for nodes inside the trust boundary. */
  readonly redis?: RedisAddress | undefined
  /**
   * A hub over HTTP instead, with the principal of this host: for nodes outside it. Of several hubs, the address that all
   * of them are served at, each at `/hubs/<name>` below it.
   */
  readonly http?: HubAddress | undefined
  /**
   * File of this node's durable store; one process at a time can open it. In a node of several hubs, the folder of such
   * files, one a hub: `<hub>.db`.
   */
  readonly mirror: string
  /** The handler: what it returns is the result, what it throws is `outcome_unknown`. */
  readonly execute?: ExecuteFunction | undefined
  /** Instead of `execute`: `commandExecutor`, `forwardExecutor`, or one of your own. */
  readonly executor?: Executor | undefined
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

/** Checks every option. @throws INVALID_ARGUMENT */
export function checkOptions(options: NodeOptions): NodeSettings {
  const { execute } = options
  const executor = options.executor ?? (execute === undefined ? undefined : functionExecutor(execute))
  if (executor === undefined) {
    throw new HoldfastError('INVALID_ARGUMENT', 'a node needs `execute` or `executor`; neither is given')
  }
  const concurrency = positive('concurrency', options.concurrency ?? defaults.concurrency)
  const [hub = defaults.hub] = hubsOf(options)
  return {
    host: hostId(options.host),
    node: printableId(options.node ?? options.host, 'node'),
    hub,
    inSet: false,
    mirror: options.mirror,
    concurrency,
    buffer: positive('buffer', options.buffer ?? bufferFor(concurrency)),
    timeLimitMs: positive('timeLimitMs', options.timeLimitMs ?? defaults.timeLimitMs),
    graceMs: positive('graceMs', options.graceMs ?? defaults.graceMs),
    drainMs: positive('drainMs', options.drainMs ?? defaults.drainMs),
    executor,
    prober: typeof options.probe === 'function' ? functionProbe(options.probe) : options.probe,
    idempotent: options.idempotent === true,
    probeTimeLimitMs: positive('probeTimeLimitMs', options.probeTimeLimitMs ?? defaults.probeTimeLimitMs),
    reach: reachOf(options),
  }
}

/** The hubs of a node, one or several. @throws INVALID_ARGUMENT */
export function hubsOf({ hub, hubs }: NodeOptions): string[] {
  if (hub !== undefined && hubs !== undefined) {
    throw new HoldfastError('INVALID_ARGUMENT', 'a node takes `hub` or `hubs`; both are given')
  }
  return checkedHubs(hubs ?? [hub ?? defaults.hub])
}

/** What is different for one of several hubs. */
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

function reachOf({ redis, http }: NodeOptions): Reach {
  if (redis !== undefined && http === undefined) return { redis }
  if (http !== undefined && redis === undefined) return { http }
  const given = redis === undefined ? 'neither is given' : 'both are given'
  throw new HoldfastError('INVALID_ARGUMENT', `a node needs \`redis\` or \`http\`; ${given}`)
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

/** Timers take no more than this. */
const longestTimer = 2_147_483_647

function positive(name: string, value: number): number {
  if (Number.isInteger(value) && value > 0 && value <= longestTimer) return value
  throw new HoldfastError(
    'INVALID_ARGUMENT',
    `${name} must be a whole number from 1 to ${longestTimer}, not ${value}`,
  )
}
