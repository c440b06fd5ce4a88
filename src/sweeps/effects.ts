import { type Sweep, sweepSlices } from './sweep.js'

/** Effects that are open for longer than `report_deadline_ms` become visible as unknown. */
export const effectsSweep: Sweep = {
  name: 'effects',
  run: (parts) => sweepSlices(parts, (cursor) => parts.parts.functions.sweepHub('effects', cursor)),
}
