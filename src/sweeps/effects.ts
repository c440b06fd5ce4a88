import { type Sweep, sweepSlices } from './sweep.js'

/** Effects that are open for longer than `report_deadline_ms` become visible as unknown. */
export const effectsSweep: Sweep = {
  name: 'effects',
  run: (input) => sweepSlices(input, (cursor) => input.hub.functions.sweepHub('effects', cursor)),
}
