// @ts-check
// What a Redis server says about its own time.
import { Redis } from 'ioredis'

/** @typedef {{ name: string, calls: number, usPerCall: number, usPerMessage: number }} FunctionTime */

/** Shorter calls are not noted: so the commands inside a function are not, and take no longer for it. */
const notedFromUs = 10
const slowlogMost = 500_000

/** @param {number} port */
export function openInspector(port) {
  const redis = new Redis({ port, protocol: 2 })
  return {
    /** INFO commandstats since the last call. */
    commandStats: async () => {
      const info = await redis.info('commandstats')
      await redis.config('RESETSTAT')
      return info
    },
    /** From now on the calls of functions are noted. */
    noteCalls: async () => {
      await redis.config('SET', 'slowlog-max-len', slowlogMost)
      await redis.config('SET', 'slowlog-log-slower-than', notedFromUs)
      await redis.slowlog('RESET')
    },
    /** What was noted, by function, and no more is. @param {number} messages */
    notedCalls: async (messages) => {
      await redis.config('SET', 'slowlog-log-slower-than', -1)
      const log = /** @type {[number, number, number, string[]][]} */ (
        await redis.slowlog('GET', slowlogMost)
      )
      return functionTimes(log, messages)
    },
    close: () => redis.quit(),
  }
}

/**
 * Entries of SLOWLOG, summed up by the name of the function; what is no function is left out.
 * @param {readonly (readonly [number, number, number, readonly string[]])[]} log @param {number} messages
 * @returns {FunctionTime[]} the most expensive first
 */
export function functionTimes(log, messages) {
  /** @type {Map<string, { calls: number, us: number }>} */
  const sums = new Map()
  for (const [, , us, [command = '', first = '']] of log) {
    if (!/^fcall(_ro)?$/i.test(command)) continue
    const sum = sums.get(first) ?? { calls: 0, us: 0 }
    sums.set(first, { calls: sum.calls + 1, us: sum.us + us })
  }
  return [...sums]
    .sort(([, a], [, b]) => b.us - a.us)
    .map(([name, { calls, us }]) => ({
      name,
      calls,
      usPerCall: Number((us / calls).toFixed(1)),
      usPerMessage: Number((us / messages).toFixed(2)),
    }))
}
