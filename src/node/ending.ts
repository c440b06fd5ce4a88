import { isHoldfastError } from '../contract/errors.js'
import type { NodeIdentity } from '../contract/steps.js'
import type { NodeEnd } from './create-node.js'
import type { Heartbeats } from './heartbeats.js'
import type { Loops, WorkParts } from './work.js'

/** How a node ends: stopped, or by what it cannot go on with. */
export interface Ending {
  /** Ends the node without leaving: its open work is recovered by its next process. */
  fail(error: Error): Promise<void>
  stop(): Promise<NodeEnd>
  /** The claim loop: its failure is the node's. */
  watch(looping: Promise<void>): void
}

export function endingOf(
  parts: WorkParts,
  who: NodeIdentity,
  loops: Loops,
  heartbeats: Heartbeats,
  halt: AbortController,
): Ending {
  const { settings, log, mirror, transport } = parts
  const { claims, lanes, attempts, recovery } = loops
  let looping: Promise<void> = Promise.resolve()
  let failed: Error | undefined

  async function fail(error: Error): Promise<void> {
    if (failed !== undefined) return
    failed = error
    log.error({ error: error.message }, 'the node ends')
    claims.stop()
    attempts.abort(error.message)
    void recovery.stop()
    halt.abort(error)
    await close()
    parts.end({ kind: 'failed', error })
  }

  async function close(): Promise<void> {
    parts.blocking.stop()
    await heartbeats.stop()
    await transport.close()
    // What is in its log is durable as it is: a disk without room for the last checkpoint takes nothing away.
    await mirror.close().catch((error: unknown) => {
      log.error({ error: String(error) }, 'the mirror was not closed tidily')
    })
  }

  let stopping: Promise<NodeEnd> | undefined
  function stop(): Promise<NodeEnd> {
    stopping ??= drain()
    return stopping
  }

  async function drain(): Promise<NodeEnd> {
    if (failed !== undefined) return { kind: 'failed', error: failed }
    claims.stop()
    const idle = lanes.stop()
    const asked = recovery.stop()
    await Promise.race([Promise.all([idle, asked]), timeout(settings.drainMs)])
    if (attempts.running() > 0) attempts.abort('the node stops')
    await Promise.race([Promise.all([idle, looping]), timeout(settings.graceMs + 2000)])
    if (failed !== undefined) return { kind: 'failed', error: failed }
    const idleNow = attempts.running() === 0 && lanes.running() === 0
    // A beat that came after the leave would be refused, and taken for the end of the node.
    await heartbeats.stop()
    const end: NodeEnd = idleNow ? await leave() : { kind: 'stopped', why: 'handlers still run' }
    halt.abort(new Error('stopped'))
    await close()
    return end
  }

  async function leave(): Promise<NodeEnd> {
    try {
      await transport.leave(who)
      log.info({ ...who }, 'left')
      return { kind: 'left' }
    } catch (error) {
      return { kind: 'stopped', why: String(error) }
    }
  }

  /** A retired host hands out nothing more: what runs may end and be reported. Anything else ends the node. */
  async function claimsEnded(error: unknown): Promise<void> {
    const cause = error instanceof Error ? error : new Error(String(error))
    if (!isHoldfastError(error, 'HOST_RETIRED')) return fail(cause)
    log.warn({ error: cause.message }, 'draining')
    looping = Promise.resolve()
    await stop()
    parts.end({ kind: 'failed', error: cause })
  }

  return {
    fail,
    stop,
    watch: (loop) => {
      looping = loop.catch((error: unknown) => claimsEnded(error))
    },
  }
}

function timeout(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref()
  })
}
