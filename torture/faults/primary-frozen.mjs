// @ts-check
// In a Cluster: the primary of the hub's slot stands still for so long that it may be replaced, and goes on then, not
// knowing it.

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'primary-frozen',
  cluster: true,
  targets: () => ['redis'],
  leastMs: 500,
  longestMs: 6000,
  restMs: 6000,
  begin: async ({ redis }) => {
    redis.kill('SIGSTOP')
    return () => void redis.kill('SIGCONT')
  },
}
