import type { Sweep } from './sweep.js'

const rowsASlice = 200
const slicesARun = 500

/** What was settled longer ago than `retention_ms` goes, oldest first; never anything without an outcome. */
export const retentionSweep: Sweep = {
  name: 'retention',
  run: async ({ hub, signal }) => {
    let [messages, deliveries, effects] = [0, 0, 0]
    for (let slice = 0; slice < slicesARun && !signal.aborted; slice += 1) {
      const pruned = await hub.functions.prune(rowsASlice)
      messages += pruned.messages
      deliveries += pruned.deliveries
      effects += pruned.effects
      if (!pruned.more) break
    }
    const pruned = messages + effects
    const notes =
      pruned === 0 ? [] : [`${messages} messages with ${deliveries} deliveries, ${effects} effects pruned`]
    return { found: pruned, repaired: pruned, left: 0, notes, cursor: '' }
  },
}
