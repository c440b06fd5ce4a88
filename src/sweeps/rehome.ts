import { type Sweep, sweepSlices } from './sweep.js'

/** Sessions of gone hosts go elsewhere, where `rehome_on_redrive` allows; the moves are obligations. */
export const rehomeSweep: Sweep = {
  name: 'rehome',
  run: (input) => sweepSlices(input, (cursor) => input.hub.functions.sweepHub('rehome', cursor)),
}
