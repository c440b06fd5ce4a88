// @ts-check
// The server is killed and what its last step wrote cut at a random byte. Loses what was acknowledged.
import { cutLast } from '../aof.mjs'

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'aof-cut',
  loses: true,
  targets: () => ['redis'],
  longestMs: 1000,
  restMs: 2500,
  begin: async ({ redis, history }, random) => {
    await redis.kill9()
    history.write({ kind: 'damage', name: 'aof-cut', ...cutLast(redis.dir, random) })
    return () => redis.start()
  },
}
