import { refillLanes } from '../hub/reconcile.js'
import { sweepHosts } from './by-host.js'
import type { Sweep } from './sweep.js'

/**
 * Lanes that no pause stops any more (lifted, expired, or taken away by hand) are rung for. Where a lane lost its list,
 * it is filled again from the rows of its host, in order.
 */
export const parkedSweep: Sweep = {
  name: 'parked',
  run: async (given) => {
    const run = await sweepHosts('parked', given)
    if (run.left === 0) return run
    const refilled = await refillLanes(given.hub, given.signal)
    const stillLeft = Math.max(0, run.left - refilled.lanes)
    return {
      ...run,
      repaired: run.repaired + run.left - stillLeft,
      left: stillLeft,
      notes: [...run.notes, ...refilled.notes].slice(0, 20),
    }
  },
}
