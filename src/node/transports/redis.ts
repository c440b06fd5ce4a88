import { setTimeout as sleep } from 'node:timers/promises'
import { onAbort } from '../../contract/abort.js'
import type { RedisAddress } from '../../contract/redis-address.js'
import type { ClaimReply } from '../../contract/steps.js'
import { attestRecord } from '../../record/attest.js'
import { openBlockingReader } from '../../record/blocking-reader.js'
import { openStore } from '../../record/connections.js'
import { functionsOf } from '../../record/functions.js'
import { keysOf } from '../../record/keys.js'
import { loadLibrary } from '../../record/library.js'
import type { NodeLog } from '../log.js'
import type { ClaimSendOptions, NodeTransport } from '../transport.js'

export interface RedisTransportOptions {
  /** URL of the server, Sentinels or Cluster that hold the record. */
  readonly redis: RedisAddress
  readonly hub: string
  readonly log: NodeLog
  /** Gives up connecting. */
  readonly signal?: AbortSignal | undefined
  readonly luaDir?: string | undefined
}

const doorbellRetryMs = 500

interface Idle {
  readonly reply: ClaimReply
  /** The doorbell's connection as it was before the claim: where that still stands, the server is the one that answered. */
  readonly over: number
}

/**
 * The transport of nodes inside the trust boundary: three connections, for steps, for heartbeats and for
 * the blocking wait, so that none of them delays another.
 * @throws STORE_UNAVAILABLE when there is no server yet
 */
export async function openRedisTransport(options: RedisTransportOptions): Promise<NodeTransport> {
  const { redis: url, luaDir, log, signal } = options
  const keys = keysOf(options.hub)
  const { tag } = keys
  const reader = openBlockingReader({ url, tag, name: 'holdfast-doorbell' })
  const opening = [
    openStore({ url, tag, name: 'holdfast-node', luaDir, signal }),
    openStore({ url, tag, name: 'holdfast-heartbeat', luaDir, signal }),
  ] as const
  const ignore = onAbort(signal, () => void reader.close())
  // The doorbell too: a wait is over the connection that was there at the claim before it.
  const [steps, beats] = await Promise.all([...opening, reader.connected()])
    .catch(async (error: unknown) => {
      await Promise.allSettled([...opening.map(async (store) => (await store).close()), reader.close()])
      throw error
    })
    .finally(ignore)
  const functions = functionsOf(steps, tag)
  const heartbeats = functionsOf(beats, tag)
  /** The last claim, where it left nothing to look at: what comes after it is waited for, once. */
  let idleSince: Idle | undefined

  async function waitForWork(
    host: string,
    { reply: idle, over }: Idle,
    options: ClaimSendOptions,
  ): Promise<void> {
    const untilNextMs = (idle.nextAtMs ?? Number.POSITIVE_INFINITY) - idle.nowMs
    const waitMs = Math.max(1, Math.min(untilNextMs, options.waitMs))
    const streams = { [keys.stream(host)]: idle.streamId, [keys.bell(host)]: idle.bellId }
    try {
      await reader.read(streams, waitMs, { signal: options.signal, over })
    } catch (error) {
      log.warn({ error: String(error) }, 'the doorbell is out of reach; claiming again instead')
      const pauseMs = Math.min(waitMs, doorbellRetryMs)
      await sleep(pauseMs, undefined, { signal: options.signal }).catch(() => undefined)
    }
  }

  return {
    join: async (who, instance, scopes, lastLogId) => {
      await loadLibrary(steps, { luaDir })
      return functions.join(who, instance, scopes, lastLogId)
    },
    heartbeat: heartbeats.heartbeat,
    leave: functions.leave,
    claim: async (who, request, count, options) => {
      const idle = idleSince
      // A claim that fails is made again without a wait: the server that answers by then may be behind what this saw.
      idleSince = undefined
      if (idle !== undefined && options.waitMs > 0) {
        await waitForWork(who.host, idle, options)
        if (options.signal.aborted) return { ...idle.reply, ghosts: [], missing: [], deliveries: [] }
      }
      const over = reader.connections
      const reply = await functions.claim(who, request, count, { onSent: options.onSent })
      if (!reply.more) idleSince = { reply, over }
      return reply
    },
    mirror: functions.mirror,
    ack: functions.ack,
    refuse: functions.refuse,
    begin: functions.begin,
    take: functions.take,
    report: functions.report,
    attest: async (who, lastLogId) => {
      await attestRecord(steps, functions, `${who.host}/${who.node}`, lastLogId)
    },
    close: async () => {
      await Promise.all([steps.close(), beats.close(), reader.close()])
    },
  }
}
