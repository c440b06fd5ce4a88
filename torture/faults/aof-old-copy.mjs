// @ts-check
// The server comes back with its data of a moment ago, as after a restored backup. Loses what was acknowledged since.
import { join } from 'node:path'
import { copyData, restoreData } from '../aof.mjs'

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'aof-old-copy',
  loses: true,
  targets: () => ['redis'],
  leastMs: 500,
  longestMs: 3000,
  restMs: 2500,
  begin: async ({ dir, redis }) => {
    const copy = join(dir, 'old-copy')
    copyData(redis.dir, copy)
    return async () => {
      await redis.kill9()
      restoreData(copy, redis.dir)
      await redis.start()
    }
  },
}
