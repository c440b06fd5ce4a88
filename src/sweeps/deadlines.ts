import { type Sweep, sweepSlices } from './sweep.js'

/** What was not claimed by `deliverBy`, or begun by `executeBy`, fails, also where no node lives. */
export const deadlinesSweep: Sweep = {
  name: 'deadlines',
  run: (input) => sweepSlices(input, (cursor) => input.hub.functions.sweepHub('deadlines', cursor)),
}
