import type { ClaimReply } from '../contract/steps.js'
import type { Handoff } from './handoff.js'
import type { Lanes } from './lanes.js'
import type { NodeLog } from './log.js'
import type { Share } from './share.js'

export interface ClaimLoopOptions {
  /** Runnable deliveries to hold at most. */
  readonly buffer: number
  readonly lanes: Lanes
  readonly handoff: Handoff
  /** Claims under a request number, until there is an answer; where there is nothing, after a wait for it. */
  claim(request: number, count: number, waiting: ClaimWait): Promise<ClaimReply>
  /** A claim was answered. */
  onProgress(): void
  /** Told of the log as it stood when a claim gave deliveries. */
  onLogId(logId: string): void
  /** Once, when nothing of an earlier process of this node is left to resume. */
  onResumed(): Promise<void>
  /** In a node of several hubs: room for what is claimed is asked for there. */
  readonly share?: Share | undefined
  readonly log: NodeLog
}

/** How long a claim may wait for something to take on, and what ends the wait. */
export interface ClaimWait {
  readonly waitMs: number
  readonly signal: AbortSignal
}

/** Claims for as long as there is room, and waits where there is nothing. */
export interface ClaimLoop {
  /** Resolves when stopped; rejects with what ended it. */
  run(): Promise<void>
  /** A place became free. */
  room(): void
  stop(): void
}

const claimAtOnce = 100
/** What one claim gave is handed off while the next ones are under way. */
const handoffsAtOnce = 4
/** A claim answers when something may become runnable; this bounds the wait where it cannot know. */
const waitAtMostMs = 60_000
/** Paused and put-off deliveries do not use up the buffer, but they are not gathered without bound either. */
const heldAtMost = 20

export function createClaimLoop(options: ClaimLoopOptions): ClaimLoop {
  const { lanes, share, log } = options
  const stopping = new AbortController()
  let request = 0
  let resumed = false
  let signalRoom: () => void = () => undefined
  const handing = new Set<Promise<void>>()
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

  /** What an earlier process left is asked for without waiting; so is what has room kept free for it in a share. */
  function waitMs(isIdle: boolean): number {
    return resumed && (isIdle || share === undefined) ? waitAtMostMs : 0
  }

  async function claimOnce(count: number, waitMs: number): Promise<ClaimReply> {
    request += 1
    const reply = await options.claim(request, count, { waitMs, signal: stopping.signal })
    options.onProgress()
    // What gave this node nothing shows it nothing that it could act on.
    if (reply.deliveries.length > 0) options.onLogId(reply.logId)
    if (reply.ghosts.length > 0)
      log.warn({ entries: reply.ghosts }, 'pending entries were gone from the stream')
    if (reply.missing.length > 0) log.error({ ids: reply.missing }, 'rows are missing from the record')
    await handOff(reply)
    if (!reply.more && !resumed) {
      await Promise.all(handing)
      resumed = true
      await options.onResumed()
    }
    return reply
  }

  /**
   * Begins to hand off, in the order of the claims; one that failed ends the loop. What was recovered may be what made
   * its node exit: nothing is claimed beside it.
   */
  async function handOff({ deliveries }: ClaimReply): Promise<void> {
    if (deliveries.length === 0) return
    const one = options.handoff(deliveries).then(() => void handing.delete(one))
    handing.add(one)
    // A wait for more would keep the failure waiting.
    one.catch(() => stopping.abort())
    if (deliveries.some(({ how }) => how === 'resume' || how === 'takeover')) await Promise.all(handing)
    if (handing.size >= handoffsAtOnce) await Promise.race(handing)
  }

  return {
    run: async () => {
      let isIdle = false
      while (!stopping.signal.aborted) {
        const wait = waitMs(isIdle)
        const places = freePlaces()
        const count = share === undefined ? places : share.roomFor(places, wait > 0)
        if (count <= 0) {
          await waitForRoom()
          continue
        }
        const reply = await claimOnce(count, wait)
        share?.claimed()
        isIdle = !reply.more
        // What was paused may run now: whatever ended the wait may have lifted it.
        if (!reply.more) lanes.wake()
      }
      await Promise.all(handing)
    },
    room: () => signalRoom(),
    stop: () => stopping.abort(),
  }
}
