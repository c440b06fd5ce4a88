import { openBlockingReader, openStore } from '../../record/connections.js'
import { functionsOf } from '../../record/functions.js'
import { keysOf } from '../../record/keys.js'
import { loadLibrary } from '../../record/library.js'
import type { NodeTransport } from '../transport.js'

export interface RedisTransportOptions {
  readonly redis: string
  readonly hub: string
  readonly luaDir?: string | undefined
}

/**
 * The transport of nodes inside the trust boundary: three connections, for steps, for heartbeats and for
 * the blocking wait, so that none of them delays another.
 * @throws STORE_UNAVAILABLE when there is no server yet
 */
export async function openRedisTransport(options: RedisTransportOptions): Promise<NodeTransport> {
  const { redis: url, luaDir } = options
  const keys = keysOf(options.hub)
  const steps = await openStore({ url, name: 'holdfast-node', luaDir })
  const beats = await openStore({ url, name: 'holdfast-heartbeat', luaDir }).catch(async (error: unknown) => {
    await steps.close()
    throw error
  })
  const reader = openBlockingReader({ url, name: 'holdfast-doorbell' })
  const functions = functionsOf(steps, keys.tag)
  const heartbeats = functionsOf(beats, keys.tag)

  return {
    join: async (who, instance, scopes, lastLogId) => {
      await loadLibrary(steps, { luaDir })
      return functions.join(who, instance, scopes, lastLogId)
    },
    heartbeat: heartbeats.heartbeat,
    leave: functions.leave,
    claim: functions.claim,
    mirror: functions.mirror,
    ack: functions.ack,
    refuse: functions.refuse,
    begin: functions.begin,
    report: functions.report,
    waitForWork: async (host, position, waitMs, signal) => {
      const streams = { [keys.stream(host)]: position.streamId, [keys.bell(host)]: position.bellId }
      await reader.read(streams, waitMs, signal)
    },
    close: async () => {
      await Promise.all([steps.close(), beats.close(), reader.close()])
    },
  }
}
