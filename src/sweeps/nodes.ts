import { sweepHosts } from './by-host.js'
import type { Sweep } from './sweep.js'

/** Dead consumers leave their groups, only when they own nothing. */
export const nodesSweep: Sweep = {
  name: 'nodes',
  run: (input) => sweepHosts('nodes', input, { idleToo: true }),
}
