// @ts-check
// A node dies, and its mirror with it. What it had begun stays unknown; everything else is handed to another node.
import { goOnAsAnother } from '../mirrors.mjs'

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'mirror-deleted',
  orphans: true,
  targets: ({ nodes }) => nodes.map((name) => `node ${name}`),
  longestMs: 1000,
  restMs: 2000,
  begin: async (world, _, { target }) => {
    await world.find(target).end()
    return () => goOnAsAnother(world, target)
  },
}
