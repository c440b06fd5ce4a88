import { type Sweep, sweepSlices } from './sweep.js'

/** What was not claimed by `deliverBy`, or begun by `executeBy`, fails, also where no node lives. */
export const deadlinesSweep: Sweep = {
  name: 'deadlines',
  run: (parts) => sweepSlices(parts, (cursor) => parts.parts.functions.sweepHub('deadlines', cursor)),
}
