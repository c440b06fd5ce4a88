import { settingIn } from '../contract/settings.js'
import { readConfiguration } from '../hub/configuration.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import type { Caller } from './identities.js'

/**
 * Whether a caller may read payloads: operators all of them, producers those of their own messages, viewers all of them
 * while the setting `viewer_payloads` is 1. A node is handed what it claims, and reads no other.
 */
export async function mayReadPayloads(
  { role }: Pick<Caller, 'role'>,
  { reader, keys }: { readonly reader: Reader; readonly keys: Keys },
): Promise<boolean> {
  if (role !== 'viewer') return role !== 'node'
  return settingIn(await readConfiguration(reader, keys), 'viewer_payloads') === 1
}
