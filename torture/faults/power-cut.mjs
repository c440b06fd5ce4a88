// @ts-check
// The power of the server fails: what it had not brought to the disk is gone.
import { diskNeeds } from '../disk.mjs'
import { prepareServerDisk, serverDisk } from '../disks.mjs'

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'power-cut',
  needs: diskNeeds,
  prepare: prepareServerDisk,
  targets: () => ['redis'],
  longestMs: 2000,
  restMs: 2500,
  begin: async (world) => {
    const { redis } = world
    const disk = serverDisk(world)
    await disk.cut(redis.kill('SIGSTOP') ? redis.pid : undefined)
    await redis.kill9()
    await disk.umount()
    disk.mount()
    return () => redis.start()
  },
}
