// @ts-check
// The disk under a node's mirror fills up: the node can keep nothing more, and leaves until there is room again.
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
    const empty = mirrorDisk(world, target).fill()
    return async () => {
      empty()
      await node.whenUp(upAgainMs)
      node.mayEnd = false
    }
  },
}
