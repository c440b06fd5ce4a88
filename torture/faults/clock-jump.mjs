// @ts-check
// The server's wall clock jumps by most of an hour, forward or back, and later to where it belongs.
import { clockNeeds, prepareServerClock, serverClock } from '../clock/clock.mjs'

/** Less than what a run keeps for its retention: what is done is not pruned by it. */
const jumpMs = 55 * 60_000

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'clock-jump',
  needs: clockNeeds,
  prepare: prepareServerClock,
  targets: () => ['redis'],
  leastMs: 100,
  longestMs: 3000,
  restMs: 1000,
  begin: async (world, random) => {
    const clock = serverClock(world)
    clock.set(random.chance(0.5) ? jumpMs : -jumpMs)
    return () => clock.set(0)
  },
}
