import type { OpenedHub } from '../hub/open-hub.js'
import { readSweeps } from '../hub/sweeps.js'

/** Sweeps whose last success is older than three intervals; a hub that has just started has as long to do them. */
export function sweepWatch({ reader, keys }: OpenedHub): () => Promise<string | undefined> {
  const startedAt = performance.now()
  return async () => {
    const upMs = performance.now() - startedAt
    const late = (await readSweeps(reader, keys)).filter(
      ({ late: isLate, everyMs }) => isLate && upMs > 3 * everyMs,
    )
    return late.length === 0 ? undefined : `not in time: ${late.map(({ name }) => name).join(', ')}`
  }
}
