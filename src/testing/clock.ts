import { HoldfastError } from '../contract/errors.js'
import type { Store } from '../record/connections.js'

/**
 * The clock of one record. It runs as the real one does, and can be set ahead: fences lapse, deadlines pass, effects come
 * of age and retention prunes without anybody waiting. Ids and entries of the log keep the real time; timers of nodes
 * (a handler's time limit, the pause before a retry) are real as well.
 */
export interface TestClock {
  /**
   * Sets it ahead by so many milliseconds, and wakes every node, which sees what is due now.
   * @throws INVALID_ARGUMENT where that is no whole number from 1
   */
  advance(ms: number): Promise<void>
  /** What the record takes the time to be, in milliseconds since 1970. */
  now(): Promise<number>
  /** For `createEffects(hub, { clock })`: the clocks of this process, as far ahead. */
  readonly local: {
    /** Milliseconds since some moment, never set back. */
    monotonic(): number
    /** Milliseconds since 1970. */
    wall(): number
  }
}

export function clockOf(store: Store, tag: string): TestClock {
  let aheadMs = 0
  async function set(ms: number): Promise<number> {
    const [, now] = (await store.fcall('hf_advance_clock', tag, [ms])) as [string, number]
    return Number(now)
  }
  return {
    advance: async (ms) => {
      if (!Number.isSafeInteger(ms) || ms < 1) {
        throw new HoldfastError(
          'INVALID_ARGUMENT',
          `a clock goes ahead by whole milliseconds from 1, not ${ms}`,
        )
      }
      await set(ms)
      aheadMs += ms
    },
    now: () => set(0),
    local: {
      monotonic: () => performance.now() + aheadMs,
      wall: () => Date.now() + aheadMs,
    },
  }
}
