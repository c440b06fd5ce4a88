import type { Violation } from './checker/index.js'
import type { CrashedDelivery } from './crash-words.js'

/** What the world has seen of each delivery, against what the record says of it. */
export async function checkEffects(
  deliveries: readonly CrashedDelivery[],
  effects: ((delivery: CrashedDelivery) => number | Promise<number>) | undefined,
): Promise<Violation[]> {
  if (effects === undefined) return []
  const found: Violation[] = []
  for (const delivery of deliveries) {
    const count = await effects(delivery)
    const wrong = wrongIn(delivery, count)
    if (wrong !== undefined) found.push({ ...wrong, ...aboutOf(delivery, count) })
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

function aboutOf({ id, key, status, attempts }: CrashedDelivery, count: number) {
  const evidence = [`delivery ${id} (key ${key}) ${status}, attempts ${attempts.join(', ') || 'none'}`]
  return { invariant: 'effects', id, evidence: [...evidence, `effects counted: ${count}`] }
}
