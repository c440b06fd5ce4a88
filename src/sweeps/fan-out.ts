import { repairObligations } from '../hub/repair.js'
import type { Sweep } from './sweep.js'

/** Fan-outs and moves that were cut are completed: an obligation in the record is all that it needs. */
export const fanOutSweep: Sweep = {
  name: 'fan-out',
  run: async ({ hub, signal }) => {
    const { messages, deliveries, stuck } = await repairObligations(hub, () => signal.aborted)
    const notes = [
      ...(messages > 0 ? [`${messages} obligations completed, ${deliveries} deliveries made or moved`] : []),
      ...(stuck > 0
        ? [`${stuck} obligations whose rows contradict themselves: ZRANGE ${hub.keys.obligations} 0 -1`]
        : []),
    ]
    return { found: messages + stuck, repaired: messages, left: stuck, notes, cursor: '' }
  },
}
