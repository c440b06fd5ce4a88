// @ts-check
// In a Cluster: the slot of the hub, with all its keys, is moved to another primary while everything works.

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'slot-moved',
  cluster: true,
  targets: () => ['redis'],
  longestMs: 0,
  restMs: 4000,
  begin: async ({ redis }, random) => {
    if (!('moveSlot' in redis)) throw new Error('there is no Cluster')
    await /** @type {import('../cluster.mjs').ClusterServer} */ (redis).moveSlot(random)
    return () => {}
  },
}
