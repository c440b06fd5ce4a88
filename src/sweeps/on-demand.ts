import { hostname } from 'node:os'
import type { SweepName } from '../contract/sweeps.js'
import type { OpenedHub } from '../hub/open-hub.js'
import type { SweepRun } from '../record/sweep-functions.js'
import { runSweep } from './run.js'

/** Sweeps that run when they are asked for, and not by themselves: for a command, and for servers of tests. */
export async function sweepsOnDemand(parts: OpenedHub) {
  const halt = new AbortController()
  const by = `${hostname()}#${process.pid}`
  return {
    scheduled: false,
    run: async (name: SweepName): Promise<SweepRun & { name: SweepName; notes: string[] }> => {
      const swept = await runSweep(parts, name, { by, signal: halt.signal })
      return { ...swept, name, notes: [...swept.notes] }
    },
    stop: async () => halt.abort(new Error('stopped')),
  }
}
