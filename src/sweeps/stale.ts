import { sweepHosts } from './by-host.js'
import type { Sweep } from './sweep.js'

/** Deliveries of gone nodes are taken over by their peers; a host with work and no live node is listed as stranded. */
export const staleSweep: Sweep = { name: 'stale', run: (input) => sweepHosts('stale', input) }
