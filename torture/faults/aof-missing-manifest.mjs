// @ts-check
// The server is stopped and the manifest of its files removed: it starts empty, without an error. Loses everything.
import { removeManifest } from '../aof.mjs'

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'aof-missing-manifest',
  loses: true,
  targets: () => ['redis'],
  longestMs: 1000,
  restMs: 2500,
  begin: async ({ redis }) => {
    await redis.stop()
    removeManifest(redis.dir)
    return () => redis.start()
  },
}
