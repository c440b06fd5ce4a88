import { auditRecord } from '../hub/audit.js'
import type { Sweep } from './sweep.js'

/** Everything against everything, and what disagrees put right where the rows say how. */
export const auditSweep: Sweep = {
  name: 'audit',
  run: async ({ hub, signal }) => {
    const { disagreements } = await auditRecord(hub, { repair: true, signal })
    const repaired = disagreements.filter((each) => each.repaired).length
    return {
      found: disagreements.length,
      repaired,
      left: disagreements.length - repaired,
      notes: disagreements.slice(0, 20).map(({ about, what }) => `${about}: ${what}`),
      // One that was stopped has not looked at everything: it is no audit yet, and begins anew.
      cursor: signal.aborted ? 'stopped' : '',
    }
  },
}
