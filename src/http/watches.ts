import { readConfiguration } from '../hub/configuration.js'
import type { OpenedHub } from '../hub/open-hub.js'
import { readSweeps } from '../hub/sweeps.js'
import { checkDurability } from '../record/durability.js'

/** What of the server's durability is not as the record needs it, in words; undefined when all is. */
export async function lookAtDurability({ store, reader, keys }: OpenedHub): Promise<string | undefined> {
  const settings = await readConfiguration(reader, keys)
  const isOn = (name: string) => settings.find((each) => each.name === name)?.value === 1
  const accepted = { everysec: isOn('accept_everysec'), unseenConfig: isOn('accept_unseen_config') }
  const bad = (await checkDurability(store, accepted)).filter(({ verdict }) => verdict === 'bad')
  return bad.length === 0 ? undefined : bad.map(({ name, value }) => `${name} is "${value}"`).join('; ')
}

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
