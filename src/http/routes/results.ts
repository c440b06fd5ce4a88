import type { z } from 'zod'
import { errorCatalogue } from '../../contract/errors.js'
import type { StepResult } from '../../contract/steps.js'
import type { stepResult } from '../../contract/wire.js'

/** The answers to a batch, as they go over the wire. */
export function resultsOf(results: readonly StepResult[]): z.input<typeof stepResult>[] {
  return results.map((result) => {
    if (!result.ok) return { ...result, next: errorCatalogue[result.code].next }
    const { id, epoch, state, attempt, outcome, replayed } = result
    return {
      id,
      ok: true,
      epoch,
      state,
      ...(attempt === undefined ? {} : { attempt: `${id.split('/')[0]}/${attempt}` }),
      ...(outcome === undefined ? {} : { outcome }),
      ...(replayed === true ? { replay: true } : {}),
    }
  })
}
