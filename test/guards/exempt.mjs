// @ts-check

/**
 * Guards without a test that catches their mutant: by name, why none can, and what stands in front of it or behind it.
 * @type {ReadonlyMap<string, string>}
 */
export const exempt = new Map([
  [
    "lib/fences.lua passes: returns if fence.kind ~= 'hold'",
    'A shortcut, which spares a read of the row: released_holds names holds alone, so that no other fence is found in it.',
  ],
  [
    "lib/sweeps_by_hub.lua sweep_rehome: returns if hf.setting(ctx, 'rehome_on_redrive') == 0",
    'A shortcut, which spares a walk over all sessions: rehome_on_redrive asks the setting again for each.',
  ],
  [
    "lib/park.lua leave_lane: returns if row.state ~= 'queued'",
    'A shortcut: only a queued delivery is in a lane, and what is in none is taken out of none by what follows.',
  ],
  [
    'lib/park.lua leave_lane: returns if not row.parked_by',
    'A shortcut: only a parked delivery is in a lane, and what is in none is taken out of none by what follows.',
  ],
])
