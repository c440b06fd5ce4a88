import type { SweepName } from '../contract/sweeps.js'
import type { SweepRunView } from '../contract/upkeep-views.js'
import type { OpenedHub } from '../hub/open-hub.js'

/** The sweeps of a server's process. */
export interface Sweeper {
  /** They run by themselves: readiness looks at them. */
  readonly scheduled: boolean
  /** Runs one now. */
  run(name: SweepName): Promise<SweepRunView>
  /** Ends the run under way after its slice. */
  stop(): Promise<void>
}

/** Starts the sweeps over a hub that has been opened. */
export type StartSweeper = (parts: OpenedHub) => Promise<Sweeper>
