// @ts-check
// What an item asks the server itself.
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'

const askEveryMs = 20

/** @param {number} port */
export function openRedis(port) {
  return new Redis({ port, protocol: 2 })
}

/** One number of INFO. @param {Redis} redis @param {string} section @param {string} field */
export async function infoNumber(redis, section, field) {
  const info = String(await redis.info(section))
  const found = new RegExp(`^${field}:(\\d+)`, 'm').exec(info)
  if (found === null) throw new Error(`INFO ${section} names no ${field}`)
  return Number(found[1])
}

/** Calls of functions since the statistics were reset, and the time inside them. @param {Redis} redis */
export async function functionCalls(redis) {
  const info = String(await redis.info('commandstats'))
  const found = /^cmdstat_fcall:calls=(\d+),usec=(\d+)/m.exec(info)
  return { calls: Number(found?.[1] ?? 0), usec: Number(found?.[2] ?? 0) }
}

export const slowMs = 10
/** Far more than any item should ever see. */
const slowKept = 10_000

/** From now on the server notes what holds it for longer than {@link slowMs}. @param {Redis} redis */
export async function watchSlowCalls(redis) {
  await redis.config('SET', 'slowlog-max-len', slowKept)
  await redis.config('SET', 'slowlog-log-slower-than', slowMs * 1000)
  await redis.config('SET', 'latency-tracking-info-percentiles', '50 99 100')
  await redis.slowlog('RESET')
  await redis.config('RESETSTAT')
}

/** Function calls over {@link slowMs} since then, and how long the longest of all took. @param {Redis} redis */
export async function slowCalls(redis) {
  const entries = /** @type {[unknown, unknown, number, string[]][]} */ (await redis.slowlog('GET', slowKept))
  const slow = entries.filter(([, , , words]) => words[0]?.toUpperCase() === 'FCALL')
  const latencies = String(await redis.info('latencystats'))
  const longest = /^latency_percentiles_usec_fcall:.*p100=([\d.]+)/m.exec(latencies)?.[1]
  return {
    slow: slow.length,
    slowest: slow.map(([, , usec, words]) => ({ function: words[1] ?? '', ms: usec / 1000 })).slice(0, 10),
    longestMs: Number((Number(longest ?? 0) / 1000).toFixed(2)),
  }
}

/** Without a file: for filling, which is not measured. @param {Redis} redis */
export async function stopAof(redis) {
  await redis.config('SET', 'appendonly', 'no')
}

/** Appends again, with an fsync before every answer, once all that is there is in the file. @param {Redis} redis */
export async function startAof(redis) {
  // A rewrite in the middle of a measurement would be measured.
  await redis.config('SET', 'auto-aof-rewrite-percentage', 0)
  await redis.config('SET', 'appendfsync', 'always')
  await redis.config('SET', 'appendonly', 'yes')
  const writing = async () =>
    (await infoNumber(redis, 'persistence', 'aof_rewrite_in_progress')) +
    (await infoNumber(redis, 'persistence', 'aof_rewrite_scheduled'))
  while ((await writing()) > 0) await sleep(askEveryMs)
}
