import { sweepHosts } from './by-host.js'
import type { Sweep } from './sweep.js'

/** Open attempts of gone executors, and those past `report_deadline_ms`, become visible as unknown. */
export const reportsSweep: Sweep = { name: 'reports', run: (input) => sweepHosts('reports', input) }
