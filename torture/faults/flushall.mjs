// @ts-check
// Everything is deleted by hand, and the record made anew after the loss. Loses everything.

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'flushall',
  loses: true,
  targets: () => ['redis'],
  leastMs: 200,
  longestMs: 2000,
  restMs: 5000,
  begin: async (world) => {
    // Nodes end where there is no record.
    for (const node of world.nodes) node.mayEnd = true
    await world.redis.call(['FLUSHALL'])
    return async () => {
      await world.makeAnew()
      for (const node of world.nodes) node.mayEnd = false
    }
  },
}
