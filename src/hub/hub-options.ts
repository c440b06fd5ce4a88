import { z } from 'zod'
import { name, option, optionsOf, redisAddress } from '../contract/options.js'
import type { OnPoint } from '../contract/points.js'
import type { RedisAddress } from '../contract/redis-address.js'
import type { OnCall } from '../record/connections.js'

/** Options of `openHub`. */
export interface HubOptions {
  /** URL of the server, Sentinels or Cluster that hold the record. */
  readonly redis: RedisAddress
  /** Name of the hub; `hf` when absent. */
  readonly hub?: string | undefined
  /** Milliseconds in which each call must be answered: 10,000 for accept with its repeats, 5,000 for others when absent. */
  readonly deadlineMs?: number | undefined
  /** Told of repairs that fail; they are tried again at the next start or `repair()`. */
  readonly onRepairError?: ((error: unknown) => void) | undefined
  /**
   * Told of messages that this hub answered for, of the last ten thousand, and that a server lacks which took over: an
   * older copy of the record, or a replica that had not got them. The log names them too (verb `lost`).
   */
  readonly onLost?: ((messageIds: readonly string[]) => void) | undefined
  /**
   * Told where the Redis server may lose what it is given, as it is set when the hub is opened (`holdfast doctor` says
   * what to set); a warning of the process when absent.
   */
  readonly onTrouble?: ((trouble: string) => void) | undefined
  /** Where the Lua sources are; the package's own when absent. */
  readonly luaDir?: string | undefined
  /** Told of each function call once it is over, for metrics. */
  readonly onCall?: OnCall | undefined
  /** Tests only: see `points`. */
  readonly onPoint?: OnPoint | undefined
}

/** Options of `initRecord`. */
export interface InitOptions {
  /** URL of the server, Sentinels or Cluster that hold the record. */
  readonly redis: RedisAddress
  /** Name of the hub; `hf` when absent. */
  readonly hub?: string | undefined
  /** The server lost the record: epochs go on above all that were ever given. */
  readonly afterLoss?: boolean | undefined
  /**
   * Told where the Redis server may lose what it is given, as it is set once the record is made (`holdfast doctor` says
   * what to set); a warning of the process when absent.
   */
  readonly onTrouble?: ((trouble: string) => void) | undefined
  /** Where the Lua sources are; the package's own when absent. */
  readonly luaDir?: string | undefined
}

const recordForms = { redis: redisAddress, hub: name.hub.optional(), luaDir: z.string().optional() }
/** As the options of a hub must be. */
export const hubForms = {
  ...recordForms,
  deadlineMs: option.count,
  onRepairError: option.function.optional(),
  onLost: option.function.optional(),
  onTrouble: option.function.optional(),
  onCall: option.function.optional(),
  onPoint: option.function.optional(),
}
export const hubForm = optionsOf<HubOptions>(hubForms)
export const initForm = optionsOf<InitOptions>({
  ...recordForms,
  afterLoss: option.flag,
  onTrouble: option.function.optional(),
})
