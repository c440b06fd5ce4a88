// @ts-check
// A node stops in the middle of its work, for so long that its deliveries go to another process; then it goes on with
// what it held, as if nothing had happened.
import { points } from '../built.mjs'

const ofHubs = /^(accept|fan_out)\./
const goesOnWithinMs = 5000

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'stop-point',
  targets: ({ nodes }) => nodes.map((name) => `node ${name}`),
  leastMs: 3000,
  longestMs: 5000,
  begin: async (world, random, { target }) => {
    const keeper = world.find(target)
    keeper.arm(random.pick(points.filter((point) => !ofHubs.test(point))), random.int(1, 8), 'SIGSTOP')
    return () => keeper.goOn(goesOnWithinMs)
  },
}
