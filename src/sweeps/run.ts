import { isHoldfastError } from '../contract/errors.js'
import type { SweepName } from '../contract/sweeps.js'
import type { HubParts } from '../hub/parts.js'
import type { SweepRun } from '../record/sweep-functions.js'
import { registry } from './registry.js'

export interface RunOptions {
  /** Which process runs it, for `sweep ls`. */
  readonly by: string
  readonly signal: AbortSignal
}

/**
 * Runs one sweep and writes how it went beside it, a failure too. It goes on where the run before it stopped.
 * @throws STORE_UNAVAILABLE, DEADLINE_EXCEEDED, STORE_UNKNOWN when not even that could be written
 */
export async function runSweep(
  hub: HubParts,
  name: SweepName,
  { by, signal }: RunOptions,
): Promise<SweepRun> {
  const startedAt = performance.now()
  const cursor = (await hub.reader.one(['HGET', hub.keys.sweep(name), 'cursor'])) ?? ''
  const sweep = () => registry[name].run({ hub, cursor: String(cursor), signal })
  const run = await sweep()
    .catch(async (error: unknown) => {
      if (!isWrongType(error)) throw error
      // A key of the hub is no index any more: it is set aside, and the sweep goes over what is left.
      await hub.functions.reconcileLists('types', { repair: true })
      return await sweep()
    })
    .catch((error: unknown) => ({ ...nothing, cursor: '', error: messageOf(error) }))
  const noted: SweepRun = { ...run, by, durationMs: performance.now() - startedAt }
  await hub.functions.noteSweep(name, noted)
  return noted
}

const nothing = { found: 0, repaired: 0, left: 0, notes: [] as readonly string[] }

function isWrongType(error: unknown): boolean {
  return error instanceof Error && error.message.includes('WRONGTYPE')
}

function messageOf(error: unknown): string {
  const text = isHoldfastError(error) || error instanceof Error ? error.message : String(error)
  return text.slice(0, 500) || 'it failed'
}
