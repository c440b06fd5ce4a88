import { settingIn } from '../contract/settings.js'
import type { SettingView } from '../contract/upkeep-views.js'
import { type Accepted, checkDurability } from '../record/durability.js'
import { readConfiguration } from './configuration.js'
import type { HubParts } from './parts.js'

/** What of the server's durability is not as the record needs it, in words; undefined when all is. */
export async function lookAtDurability({
  store,
  reader,
  keys,
}: Pick<HubParts, 'store' | 'reader' | 'keys'>): Promise<string | undefined> {
  const settings = await readConfiguration(reader, keys)
  const checks = await checkDurability(store, acceptedBy(settings))
  const bad = checks.filter(({ verdict }) => verdict === 'bad')
  return bad.length === 0 ? undefined : bad.map(({ name, value }) => `${name} is "${value}"`).join('; ')
}

/** What an operator accepted by settings. */
export function acceptedBy(settings: readonly SettingView[]): Accepted {
  return {
    everysec: settingIn(settings, 'accept_everysec') === 1,
    unseenConfig: settingIn(settings, 'accept_unseen_config') === 1,
  }
}

/** Tells it, where there is any; a server that does not answer is told of by the calls that need it. */
export async function tellOfTrouble(
  parts: Parameters<typeof lookAtDurability>[0],
  tell: (trouble: string) => void = warnOfTrouble,
): Promise<void> {
  const trouble = await lookAtDurability(parts).catch(() => undefined)
  if (trouble !== undefined) tell(trouble)
}

/** A warning of the process, where nobody asked to be told otherwise. */
export function warnOfTrouble(trouble: string): void {
  process.emitWarning(`the Redis server may lose what it is given: ${trouble}`, {
    type: 'HoldfastWarning',
    detail: '`holdfast doctor` says what to set; `accept_everysec` says that a loss is lived with',
  })
}
