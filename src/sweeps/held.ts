import { type Sweep, sweepSlices } from './sweep.js'

/** Holds that were lifted, lapsed or taken away by hand give back what they parked. */
export const heldSweep: Sweep = {
  name: 'held',
  run: (input) => sweepSlices(input, (cursor) => input.hub.functions.sweepHub('held', cursor)),
}
