import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../contract/backoff.js'
import { isHoldfastError } from '../contract/errors.js'
import { createBlockingMeter } from './blocking.js'
import { type NodeLog, silentLog } from './log.js'
import { openMirror } from './mirror.js'
import { checkOptions, type NodeOptions, type NodeSettings } from './node-options.js'
import type { NodeTransport } from './transport.js'
import { openHttpTransport } from './transports/http.js'
import { openRedisTransport } from './transports/redis.js'
import { type RunningWork, startWork } from './work.js'

export type { HubAddress, NodeOptions } from './node-options.js'

/**
 * How a node ended. `left`: cleanly, what it had not begun is free for others at once. `stopped`: without
 * leaving (a handler would not end, or the record was out of reach), so the hub finds out by its silence.
 * `failed`: superseded, or its mirror or the record refused to go on.
 */
export type NodeEnd =
  | { readonly kind: 'left' }
  | { readonly kind: 'stopped'; readonly why: string }
  | { readonly kind: 'failed'; readonly error: Error }

export interface HoldfastNode {
  readonly host: string
  readonly node: string
  /**
   * Opens the mirror, joins, reports what an earlier process left, and begins to work. Waits for a server
   * that is not there yet.
   * @throws MIRROR_LOCKED, MIRROR_UNUSABLE, MIRROR_CLONED, SUPERSEDED, STORE_UNKNOWN, INVALID_ARGUMENT
   */
  start(): Promise<void>
  /** Claims nothing more, lets handlers finish (aborts them after `drainMs`), leaves, and closes. */
  stop(): Promise<void>
  /** Resolves when the node has ended, by `stop` or by an error. */
  readonly closed: Promise<NodeEnd>
}

const startRetry = { leastMs: 100, mostMs: 2000 }

/** A node (contract sections 3 and 8). Does nothing until it is started. @throws INVALID_ARGUMENT */
export function createNode(options: NodeOptions): HoldfastNode {
  const settings = checkOptions(options)
  const log = options.log ?? silentLog
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
      file: options.mirror,
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
      return await openRedisTransport({ redis: reach.redis, hub, log, luaDir })
    } catch (error) {
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE') || signal.aborted) throw error
      log.warn({ error: error.message, failures }, 'no server yet')
      await sleep(backoffMs(startRetry, failures), undefined, { signal })
    }
  }
}
