import type { SweepName, Swept } from '../contract/sweeps.js'
import type { HubParts } from '../hub/parts.js'
import type { Slice } from '../record/sweep-functions.js'

/** What a sweep works with. */
export interface SweepInput {
  readonly hub: HubParts
  /** Where the run before stopped, when it did not come to its end; empty at first. */
  readonly cursor: string
  /** Asks it to stop after the slice under way. */
  readonly signal: AbortSignal
}

/** What a run did, and where the next one goes on; an empty cursor is the end. */
export interface Run extends Swept {
  readonly cursor: string
}

/** One sweep: idempotent, bounded, harmless when doubled. */
export interface Sweep {
  readonly name: SweepName
  run(input: SweepInput): Promise<Run>
}

const notesKept = 20

/** Sums what slices found; keeps the first notes. */
export interface Sum {
  add(slice: Swept): void
  run(cursor: string): Run
}

export function sumOf(): Sum {
  let [found, repaired, left] = [0, 0, 0]
  const notes: string[] = []
  return {
    add: (slice) => {
      found += slice.found
      repaired += slice.repaired
      left += slice.left
      notes.push(...slice.notes.slice(0, notesKept - notes.length))
    },
    run: (cursor) => ({ found, repaired, left, notes, cursor }),
  }
}

/** Slices of one run; what is more waits for the next. */
export const slicesAtMost = 5000

/** Calls slice after slice, from where the run before stopped, to the end, the bound or the stop. */
export async function sweepSlices(
  { cursor, signal }: SweepInput,
  slice: (cursor: string) => Promise<Slice>,
): Promise<Run> {
  const sum = sumOf()
  let at = cursor
  for (let slices = 0; slices < slicesAtMost; slices += 1) {
    const swept = await slice(at)
    sum.add(swept)
    at = swept.cursor
    if (at === '' || signal.aborted) break
  }
  return sum.run(at)
}
