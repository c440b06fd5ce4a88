import { HoldfastError } from '../contract/errors.js'
import { type Setting, type SettingName, settingIn, settings, valueOfText } from '../contract/settings.js'
import type { SettingView } from '../contract/upkeep-views.js'
import type { Functions } from '../record/functions.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'

/** Every tunable, then every field of the config hash that is none. */
export async function readConfiguration(reader: Reader, keys: Keys): Promise<SettingView[]> {
  const fields = await reader.hash(keys.config)
  const known = Object.entries(settings).map(([name, setting]) =>
    settingView(name, setting, fields.get(name)),
  )
  const strangers = [...fields]
    .filter(([name]) => !Object.hasOwn(settings, name))
    .map(([name, set]) => ({
      name,
      meaning: 'no such setting',
      set,
      bad: true,
    }))
  return [...known, ...strangers]
}

function settingView(name: string, setting: Setting, set: string | undefined): SettingView {
  const { default: usual, meaning } = setting
  const shown = { name, default: usual, meaning }
  if (set === undefined) return { ...shown, value: usual, bad: false }
  const value = valueOfText(setting, set)
  return { ...shown, value: value ?? usual, set, bad: value === undefined }
}

/** What is wrong where nodes are to beat so seldom that they would be taken for gone; undefined where nothing is. */
export function paceProblem(views: readonly SettingView[]): string | undefined {
  const heartbeatMs = settingIn(views, 'heartbeat_ms')
  const staleAfterMs = settingIn(views, 'stale_after_ms')
  if (3 * heartbeatMs <= staleAfterMs) return undefined
  return `heartbeat_ms ${heartbeatMs} is more than a third of stale_after_ms ${staleAfterMs}: nodes beat every ${Math.floor(staleAfterMs / 3)} ms`
}

/**
 * Changes tunables for every process at once: all of them, or none.
 * @throws INVALID_ARGUMENT for an unknown name or a bad value; nothing is changed
 */
export async function changeSettings(
  functions: Functions,
  changes: Readonly<Record<string, number | string>>,
  actor: string,
): Promise<void> {
  const texts = Object.entries(changes).map(([name, value]) => [name, String(value)] as const)
  const problems = texts.flatMap(([name, text]) => {
    if (!isSettingName(name)) {
      return [`no setting ${JSON.stringify(name)}; known: ${Object.keys(settings).join(', ')}`]
    }
    const problem = problemWith(settings[name], text)
    return problem === undefined ? [] : [`${name} ${problem}`]
  })
  if (texts.length === 0) problems.push('no setting is named')
  if (problems.length > 0) throw new HoldfastError('INVALID_ARGUMENT', problems.join('; '))
  await functions.configure(Object.fromEntries(texts), actor)
}

function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(settings, name)
}

function problemWith(setting: Setting, text: string): string | undefined {
  if (valueOfText(setting, text) !== undefined) return undefined
  const { least, most } = setting
  const range = most === undefined ? `${least}` : `${least} to ${most}`
  return `must be a whole number from ${range}, not ${JSON.stringify(text)}`
}
