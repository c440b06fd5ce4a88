// @ts-check
// The disk under a node's mirror fills up: the node can keep nothing more, and leaves until there is room again.
import { spawnSync } from 'node:child_process'
import { diskNeeds } from '../disk.mjs'
import { mirrorDisk, prepareMirrorDisks } from '../disks.mjs'

const upAgainMs = 20_000

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'mirror-full',
  needs: diskNeeds,
  prepare: prepareMirrorDisks,
  targets: ({ nodes }) => nodes.map((name) => `node ${name}`),
  leastMs: 200,
  longestMs: 3000,
  restMs: 2000,
  begin: async (world, _, { target }) => {
    const node = world.find(target)
    node.mayEnd = true
    const disk = mirrorDisk(world, target)
    const empty = disk.fill()
    return async () => {
      empty()
      // Or a power cut soon after would bring back what filled it.
      spawnSync('sync', ['-f', disk.dir])
      await node.whenUp(upAgainMs)
      node.mayEnd = false
    }
  },
}
