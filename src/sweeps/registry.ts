import type { SweepName } from '../contract/sweeps.js'
import { auditSweep } from './audit.js'
import { claimsSweep } from './claims.js'
import { deadlinesSweep } from './deadlines.js'
import { effectsSweep } from './effects.js'
import { fanOutSweep } from './fan-out.js'
import { heldSweep } from './held.js'
import { nodesSweep } from './nodes.js'
import { parkedSweep } from './parked.js'
import { rehomeSweep } from './rehome.js'
import { reportsSweep } from './reports.js'
import { retentionSweep } from './retention.js'
import { staleSweep } from './stale.js'
import type { Sweep } from './sweep.js'

/** Every sweep by its name, in the order in which a first round makes sense. */
export const registry: Readonly<Record<SweepName, Sweep>> = {
  'fan-out': fanOutSweep,
  claims: claimsSweep,
  parked: parkedSweep,
  held: heldSweep,
  stale: staleSweep,
  reports: reportsSweep,
  deadlines: deadlinesSweep,
  effects: effectsSweep,
  rehome: rehomeSweep,
  nodes: nodesSweep,
  retention: retentionSweep,
  audit: auditSweep,
}
