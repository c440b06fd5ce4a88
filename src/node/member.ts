import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../contract/backoff.js'
import { HoldfastError, isHoldfastError } from '../contract/errors.js'
import { createBlockingMeter } from './blocking.js'
import type { HoldfastNode, NodeEnd } from './create-node.js'
import type { NodeLog } from './log.js'
import { openMirror } from './mirror.js'
import type { NodeOptions, NodeSettings } from './node-options.js'
import type { Share } from './share.js'
import type { NodeTransport } from './transport.js'
import { openHttpTransport } from './transports/http.js'
import { openRedisTransport } from './transports/redis.js'
import { type RunningWork, startWork } from './work.js'

const startRetry = { leastMs: 100, mostMs: 2000 }

/** A node on one hub; of a node of several hubs, what works on one of them, within its share. */
export function createMember(
  options: NodeOptions,
  settings: NodeSettings,
  log: NodeLog,
  share?: Share,
): HoldfastNode {
  const starting = new AbortController()
  let running: RunningWork | undefined
  let opened: Promise<RunningWork> | undefined
  let end: (how: NodeEnd) => void = () => undefined
  const closed = new Promise<NodeEnd>((resolve) => {
    end = resolve
  })

  async function open(): Promise<RunningWork> {
    const blocking = createBlockingMeter(log)
    const mirror = openMirror({
      file: settings.mirror,
      host: settings.host,
      node: settings.node,
      hub: settings.hub,
      onCommit: (tookMs) => blocking.note('mirror', tookMs),
    })
    try {
      const transport = await openTransport(settings, options.luaDir, log, starting.signal)
      return await startWork({
        options,
        settings,
        log,
        mirror,
        transport,
        blocking,
        share,
        end,
        signal: starting.signal,
      }).catch(async (error: unknown) => {
        await transport.close()
        throw error
      })
    } catch (error) {
      // Why it did not start is what counts, not how its mirror was closed.
      await mirror.close().catch(() => undefined)
      throw error
    }
  }

  return {
    host: settings.host,
    node: settings.node,
    closed,
    start: async () => {
      if (starting.signal.aborted) {
        throw new HoldfastError('CLOSED', 'the node was stopped', {
          next: 'make another node, and start that',
        })
      }
      opened ??= open()
      running = await opened
    },
    stop: async () => {
      starting.abort(new Error('stopped'))
      running ??= await opened?.catch(() => undefined)
      end((await running?.stop()) ?? { kind: 'left' })
    },
  }
}

async function openTransport(
  { reach, hub }: NodeSettings,
  luaDir: string | undefined,
  log: NodeLog,
  signal: AbortSignal,
): Promise<NodeTransport> {
  if ('http' in reach) return openHttpTransport(reach.http)
  for (let failures = 1; ; failures += 1) {
    try {
      return await openRedisTransport({ redis: reach.redis, hub, log, luaDir, signal })
    } catch (error) {
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE') || signal.aborted) throw error
      log.warn({ error: error.message, failures }, 'no server yet')
      await sleep(backoffMs(startRetry, failures), undefined, { signal })
    }
  }
}
