// @ts-check
// The power of a node's machine fails: its process ends, and what its mirror had not brought to the disk is gone.
import { diskNeeds } from '../disk.mjs'
import { mirrorDisk, prepareMirrorDisks } from '../disks.mjs'

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'mirror-power-cut',
  needs: diskNeeds,
  prepare: prepareMirrorDisks,
  targets: ({ nodes }) => nodes.map((name) => `node ${name}`),
  longestMs: 2500,
  restMs: 2000,
  begin: async (world, _, { target }) => {
    const node = world.find(target)
    const disk = mirrorDisk(world, target)
    await disk.cut(node.kill('SIGSTOP') ? node.pid : undefined)
    await node.end()
    await disk.umount()
    disk.mount()
    return () => node.start()
  },
}
