import type { Violation } from './checker/index.js'
import type { CrashedDelivery } from './crash-words.js'

/** A delivery, and how each of its attempts ended, in words. */
export interface Crashed {
  readonly delivery: CrashedDelivery
  readonly ends: readonly string[]
}

/** What the world has seen of each delivery, against what the record says of it. */
export async function checkEffects(
  deliveries: readonly Crashed[],
  effects: ((delivery: CrashedDelivery) => number | Promise<number>) | undefined,
): Promise<Violation[]> {
  if (effects === undefined) return []
  const found: Violation[] = []
  for (const crashed of deliveries) {
    const count = await effects(crashed.delivery)
    const wrong = wrongIn(crashed.delivery, count)
    if (wrong !== undefined) found.push({ ...wrong, ...aboutOf(crashed, count) })
  }
  return found
}

/** What is unknown may have happened or not; what happened twice is wrong in any case. */
function wrongIn({ status }: CrashedDelivery, count: number): Pick<Violation, 'text' | 'means'> | undefined {
  if (count > 1) return { text: `its effect happened ${count} times`, means: 'twice' }
  if (count === 0 && status === 'done')
    return { text: 'it is done, but its effect never happened', means: 'lost' }
  const isUndone = status === 'not_sent' || status === 'none'
  if (count > 0 && isUndone) return { text: `it is ${status}, but its effect happened`, means: 'twice' }
  return undefined
}

function aboutOf({ delivery: { id, key }, ends }: Crashed, count: number) {
  const tried = ends.length === 0 ? 'no attempt' : `attempts ${ends.join(', ')}`
  const evidence = [`delivery ${id} (key ${key}): ${tried}`, `effects counted: ${count}`]
  return { invariant: 'effects', id, evidence }
}
