import type { Store } from '../../src/record/connections.js'
import type { Coverage } from './coverage.js'
import { beginning, callOf, type Plan } from './generate.js'
import { openWorld, type World } from './world.js'

/** Runs on a fresh record. Fails with the calls that were made, the last one being the one. */
export async function inWorld(
  store: Store,
  coverage: Coverage,
  run: (world: World) => Promise<void>,
): Promise<void> {
  const world = await openWorld(store, coverage)
  try {
    await run(world)
    coverage.noteEnd(world.model)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new Error(`${message}\nafter these calls:\n${world.trace.join('\n')}`, { cause: error })
  }
}

/** Plays one sequence. */
export function play(store: Store, sequence: readonly Plan[], coverage: Coverage): Promise<void> {
  return inWorld(store, coverage, async (world) => {
    for (const call of beginning) await world.step(call)
    for (const plan of sequence) {
      const call = callOf(world, plan)
      if (call !== undefined) await world.step(call)
    }
  })
}
