// @ts-check
// The server's disk takes what is written and cannot sync it. With `appendfsync always` the server ends itself before
// it answers, and again at each start, until the disk works.
import { fsyncNeeds, prepareServerSyncs, serverSyncs } from '../fsync/fsync.mjs'

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'fsync-error',
  needs: fsyncNeeds,
  prepare: prepareServerSyncs,
  targets: () => ['redis'],
  leastMs: 200,
  longestMs: 2000,
  restMs: 2500,
  begin: async (world) => {
    const { redis } = world
    redis.mayEnd = true
    const syncs = serverSyncs(world)
    syncs.fail(true)
    return async () => {
      syncs.fail(false)
      await redis.start()
      redis.mayEnd = false
    }
  },
}
