import { setTimeout as sleep } from 'node:timers/promises'
import type { ClaimReply } from '../contract/steps.js'
import type { Handoff } from './handoff.js'
import type { Lanes } from './lanes.js'
import type { NodeLog } from './log.js'
import type { Position } from './transport.js'

export interface ClaimLoopOptions {
  /** Runnable deliveries to hold at most. */
  readonly buffer: number
  readonly lanes: Lanes
  readonly handoff: Handoff
  /** Claims under a request number, until there is an answer. */
  claim(request: number, count: number): Promise<ClaimReply>
  waitForWork(position: Position, waitMs: number, signal: AbortSignal): Promise<void>
  /** Told of every log id and of progress made. */
  onProgress(logId: string): void
  /** Once, when nothing of an earlier process of this node is left to resume. */
  onResumed(): Promise<void>
  readonly log: NodeLog
}

/** Claims for as long as there is room, and waits at the doorbell for the rest. */
export interface ClaimLoop {
  /** Resolves when stopped; rejects with what ended it. */
  run(): Promise<void>
  /** A place became free. */
  room(): void
  stop(): void
}

const claimAtOnce = 100
/** A claim answers when something may become runnable; this bounds the wait where it cannot know. */
const waitAtMostMs = 60_000
/** Paused and put-off deliveries do not use up the buffer, but they are not gathered without bound either. */
const heldAtMost = 20

export function createClaimLoop(options: ClaimLoopOptions): ClaimLoop {
  const { lanes, log } = options
  const stopping = new AbortController()
  let request = 0
  let resumed = false
  let signalRoom: () => void = () => undefined
  stopping.signal.addEventListener('abort', () => signalRoom())

  function freePlaces(): number {
    const places = Math.min(options.buffer - lanes.active(), heldAtMost * options.buffer - lanes.total())
    return Math.min(places, claimAtOnce)
  }

  async function waitForRoom(): Promise<void> {
    await new Promise<void>((resolve) => {
      signalRoom = resolve
    })
  }

  async function claimOnce(count: number): Promise<ClaimReply> {
    request += 1
    const reply = await options.claim(request, count)
    options.onProgress(reply.logId)
    if (reply.ghosts.length > 0)
      log.warn({ entries: reply.ghosts }, 'pending entries were gone from the stream')
    if (reply.missing.length > 0) log.error({ ids: reply.missing }, 'rows are missing from the record')
    await options.handoff(reply.deliveries)
    if (!reply.more && !resumed) {
      resumed = true
      await options.onResumed()
    }
    return reply
  }

  async function wait(reply: ClaimReply): Promise<void> {
    const untilNextMs = reply.nextAtMs === undefined ? waitAtMostMs : reply.nextAtMs - reply.nowMs
    const waitMs = Math.max(1, Math.min(untilNextMs, waitAtMostMs))
    try {
      await options.waitForWork(reply, waitMs, stopping.signal)
    } catch (error) {
      log.warn({ error: String(error) }, 'the doorbell is out of reach; claiming again instead')
      await sleep(Math.min(waitMs, 500), undefined, { signal: stopping.signal }).catch(() => undefined)
    }
  }

  return {
    run: async () => {
      while (!stopping.signal.aborted) {
        const count = freePlaces()
        if (count <= 0) {
          await waitForRoom()
          continue
        }
        const reply = await claimOnce(count)
        if (reply.more || stopping.signal.aborted) continue
        await wait(reply)
        lanes.wake()
      }
    },
    room: () => signalRoom(),
    stop: () => stopping.abort(),
  }
}
