import type { RedisAddress } from '../contract/redis-address.js'
import { redactUrl } from './address.js'
import { openStore } from './connections.js'
import { type LibraryOptions, type LoadedLibrary, loadLibrary } from './library.js'
import { reachOf } from './reach.js'

/** What one primary of a Cluster has, or why that could not be seen to. */
export interface OnPrimary {
  /** Its URL, without passwords. */
  readonly primary: string
  readonly loaded?: LoadedLibrary | undefined
  readonly failure?: unknown
}

const answerWithinMs = 3000

/**
 * Brings the library to every primary of a Cluster: a hub's slot may be moved to any of them. Empty where there is no
 * Cluster: its one server gets the library when it is connected to.
 * @throws Error when no node of the Cluster answers
 */
export async function loadLibraryEverywhere(
  address: RedisAddress,
  options: LibraryOptions = {},
): Promise<OnPrimary[]> {
  const primaries = await reachOf(address).primaries()
  return await Promise.all(primaries.map((primary) => loadOn(primary, options)))
}

async function loadOn(url: RedisAddress, options: LibraryOptions): Promise<OnPrimary> {
  const primary = redactUrl(url)
  try {
    const deadlines = { deadlineMs: answerWithinMs, connectDeadlineMs: answerWithinMs }
    const store = await openStore({ url, name: 'holdfast-library', ...deadlines })
    try {
      return { primary, loaded: await loadLibrary(store, options) }
    } finally {
      await store.close()
    }
  } catch (failure) {
    return { primary, failure }
  }
}
