// @ts-check
// The server's wall clock jumps to and fro many times a second.
import { clockNeeds, prepareServerClock, serverClock } from '../clock/clock.mjs'

const furthestMs = 10 * 60_000
const everyMs = { least: 1, most: 40 }

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'clock-strobe',
  needs: clockNeeds,
  prepare: prepareServerClock,
  targets: () => ['redis'],
  leastMs: 200,
  longestMs: 2000,
  restMs: 1000,
  begin: async (world, random) => {
    const clock = serverClock(world)
    /** @type {NodeJS.Timeout} */
    let timer
    const jump = () => {
      clock.set(random.chance(0.5) ? 0 : random.int(-furthestMs, furthestMs))
      timer = setTimeout(jump, random.int(everyMs.least, everyMs.most))
    }
    jump()
    return () => {
      clearTimeout(timer)
      clock.set(0)
    }
  },
}
