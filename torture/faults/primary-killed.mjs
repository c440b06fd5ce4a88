// @ts-check
// In a Cluster: the primary of the hub's slot dies. Its replica takes over, unless it comes back before.

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'primary-killed',
  cluster: true,
  targets: () => ['redis'],
  longestMs: 5000,
  restMs: 6000,
  begin: async ({ redis }) => {
    await redis.kill9()
    return () => redis.start()
  },
}
