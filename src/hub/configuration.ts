import { HoldfastError } from '../contract/errors.js'
import { type Setting, type SettingName, settings } from '../contract/settings.js'
import type { Store } from '../record/connections.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'

/** A tunable as it works now. */
export interface SettingView {
  readonly name: string
  /** What the functions use. */
  readonly value: number
  readonly default: number
  readonly meaning: string
  /** The text in the record, where there is one. */
  readonly set?: string
  /** True when the text in the record is no value of this setting: the default is used instead. */
  readonly bad: boolean
}

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
      value: Number.NaN,
      default: Number.NaN,
      meaning: 'no such setting',
      set,
      bad: true,
    }))
  return [...known, ...strangers]
}

function settingView(name: string, setting: Setting, set: string | undefined): SettingView {
  const shown = { name, default: setting.default, meaning: setting.meaning }
  if (set === undefined) return { ...shown, value: setting.default, bad: false }
  const bad = problemWith(setting, set) !== undefined
  return { ...shown, value: bad ? setting.default : Number(set), set, bad }
}

/**
 * Changes a tunable for every process at once.
 * @throws INVALID_ARGUMENT for an unknown name or a bad value; nothing is changed
 */
export async function changeSetting(
  parts: { readonly store: Store; readonly reader: Reader; readonly keys: Keys },
  name: string,
  value: string,
): Promise<void> {
  if (!isSettingName(name)) {
    throw new HoldfastError(
      'INVALID_ARGUMENT',
      `no setting ${JSON.stringify(name)}; known: ${Object.keys(settings).join(', ')}`,
    )
  }
  const problem = problemWith(settings[name], value)
  if (problem !== undefined) throw new HoldfastError('INVALID_ARGUMENT', `${name} ${problem}`)
  await parts.reader.all([])
  await parts.store.call(['HSET', parts.keys.config, name, value])
}

function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(settings, name)
}

function problemWith(setting: Setting, text: string): string | undefined {
  const value = Number(text)
  if (/^[0-9]+$/.test(text) && Number.isSafeInteger(value) && value >= setting.least) return undefined
  return `must be a whole number from ${setting.least}, not ${JSON.stringify(text)}`
}
