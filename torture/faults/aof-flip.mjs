// @ts-check
// The server is stopped and one bit of a payload flipped in its file, which has no checksums. Loses what was acknowledged.
import { flipPayload } from '../aof.mjs'

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'aof-flip',
  loses: true,
  targets: () => ['redis'],
  longestMs: 1000,
  restMs: 2500,
  begin: async ({ redis, history }, random) => {
    await redis.stop()
    history.write({ kind: 'damage', name: 'aof-flip', ...flipPayload(redis.dir, random) })
    return () => redis.start()
  },
}
