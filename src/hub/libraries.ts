import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisAddress } from '../contract/redis-address.js'
import { loadLibraryEverywhere } from '../record/every-primary.js'
import { reachOf } from '../record/reach.js'

const everyMs = 5000

/**
 * Sees to it that every primary of a Cluster has the library, new ones too, before a slot is moved to it. Does nothing
 * where there is no Cluster. What fails is tried again.
 */
export function keepLibraries(redis: RedisAddress, luaDir: string | undefined): { stop(): Promise<void> } {
  const closing = new AbortController()
  async function keep(): Promise<void> {
    while (!closing.signal.aborted) {
      await loadLibraryEverywhere(redis, { luaDir }).catch(() => undefined)
      await sleep(everyMs, undefined, { signal: closing.signal, ref: false }).catch(() => undefined)
    }
  }
  const keeping = reachOf(redis).kind === 'cluster' ? keep() : Promise.resolve()
  return {
    stop: async () => {
      closing.abort()
      await keeping
    },
  }
}
