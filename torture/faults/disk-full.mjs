// @ts-check
// The disk of the server fills up. With `appendfsync always` the server ends itself at its next write, and cannot take
// any more until there is room again.
import { spawnSync } from 'node:child_process'
import { diskNeeds } from '../disk.mjs'
import { prepareServerDisk, serverDisk } from '../disks.mjs'

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'disk-full',
  needs: diskNeeds,
  prepare: prepareServerDisk,
  targets: () => ['redis'],
  leastMs: 200,
  longestMs: 3000,
  restMs: 2500,
  begin: async (world) => {
    const { redis } = world
    redis.mayEnd = true
    const disk = serverDisk(world)
    const empty = disk.fill()
    return async () => {
      empty()
      // Or a power cut soon after would bring back what filled it.
      spawnSync('sync', ['-f', disk.dir])
      await redis.start()
      redis.mayEnd = false
    }
  },
}
