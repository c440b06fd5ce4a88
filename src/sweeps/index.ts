/** The sweeps, for a program that has a hub within it and no server of ours: what crashes leave and what falls due. */

import { checkOptions, name, objectWith, optionsOf, redisAddress } from '../contract/options.js'
import type { RedisAddress } from '../contract/redis-address.js'
import { openHubParts } from '../hub/open-hub.js'
import { type SweepLog, startSchedule } from './schedule.js'

export type { RedisAddress, RedisTls } from '../contract/redis-address.js'
export type { SweepLog } from './schedule.js'

/** Options of {@link startSweeps}. */
export interface SweepsOptions {
  /** Where the record is. */
  readonly redis: RedisAddress
  /** Name of the hub; `hf` when absent. Each hub of a set has sweeps of its own. */
  readonly hub?: string | undefined
  /** Told of what was swept, and of sweeps that failed; a pino logger will do. Nobody when absent. */
  readonly log?: SweepLog | undefined
}

/** Sweeps at work in this process. */
export interface Sweeps {
  /** Ends the run under way after its slice, and closes. */
  stop(): Promise<void>
}

const form = optionsOf<SweepsOptions>({
  redis: redisAddress,
  hub: name.hub.optional(),
  log: objectWith('a logger, which has info and warn', ['info', 'warn']).optional(),
})
const silent: SweepLog = { info: () => undefined, warn: () => undefined }

/**
 * Runs the scheduled sweeps of a hub in this process, as `holdfast serve` and the plugin for fastify do. Any number of
 * processes may: they share one schedule. At least one has to, or an attempt that a crash cut is never listed, and no
 * deadline passes.
 * @throws STORE_UNKNOWN when there is no record (run `holdfast init`), STORE_UNAVAILABLE, INVALID_ARGUMENT
 */
export async function startSweeps(options: SweepsOptions): Promise<Sweeps> {
  checkOptions('startSweeps', form, options)
  const { redis, hub, log = silent } = options
  const parts = await openHubParts({ redis, hub })
  const schedule = await startSchedule({ redis, parts, log }).catch(async (error: unknown) => {
    await parts.hub.close()
    throw error
  })
  return {
    stop: async () => {
      await schedule.stop()
      await parts.hub.close()
    },
  }
}
