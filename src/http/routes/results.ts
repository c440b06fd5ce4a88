import type { z } from 'zod'
import { errorCatalogue } from '../../contract/errors.js'
import type { StepOptions, StepResult } from '../../contract/steps.js'
import type { stepReply, stepResult } from '../../contract/wire-nodes.js'

/** The answer to a batch, with the log as it stood. */
export async function answeredBy(
  step: (options: StepOptions) => Promise<readonly StepResult[]>,
): Promise<z.input<typeof stepReply>> {
  let logId: string | undefined
  const results = await step({
    onLogId: (id) => {
      logId = id
    },
  })
  return { results: resultsOf(results), ...(logId === undefined ? {} : { logId }) }
}

function resultsOf(results: readonly StepResult[]): z.input<typeof stepResult>[] {
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
