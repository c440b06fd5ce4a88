import { backoffMs } from '../contract/backoff.js'
import type { ClaimedDelivery, StepResult } from '../contract/steps.js'
import type { Place, Share } from './share.js'

/** A delivery that is being handed off to this node. */
export interface Arrival {
  /** Whether a begin can still be asked for in the same call as the handoff. */
  readonly open: boolean
  /** Asks for that, under a grant; `minted` tells once whether the grant is durable. */
  join(grant: string, minted: Promise<boolean>): void
  /** What the record answered: whether it is ours, and what became of the begin that was asked for with it. */
  readonly answer: Promise<{ readonly accepted: boolean; readonly begun?: StepResult | undefined }>
}

/** A delivery that this node holds and will execute, once it is handed off. */
export interface Work {
  readonly id: string
  epoch: number
  readonly session: string | undefined
  readonly message: ClaimedDelivery['message']
  readonly payload: Buffer
  /** Attempts of ours that ended as not_sent. */
  tries: number
  /** Minted and durable, asked for, not yet given: a pause made the record refuse it. */
  grant: string | undefined
  /** Begun by an earlier process, under `grant`: to be begun again. */
  readonly replay: boolean
  /** Missing once the handoff is over. */
  arrival?: Arrival | undefined
  /** Where it runs, in a node of several hubs. */
  place?: Place | undefined
}

/** What became of one run. `again`: not_sent, to be tried after a while; `paused`: begin was refused for now. */
export type Verdict = { kind: 'over' } | { kind: 'again'; afterMs: number } | { kind: 'paused' }

export interface LanesOptions {
  /** Lanes executed at the same time. */
  readonly concurrency: number
  /**
   * Executes the work; never rejects. It calls `leave` as soon as its outcome is durable: its place and its lane are the
   * next one's from then on, while the outcome is still being reported.
   */
  run(work: Work, leave: () => void): Promise<Verdict>
  /** Called whenever a place becomes free. */
  onRoom(): void
  /** In a node of several hubs: its places are taken from there. */
  readonly share?: Share | undefined
}

/**
 * What this node has taken on, lane by lane: one of a lane runs at a time, in the order in which they were
 * claimed; a redriven one lets the next pass, a paused one does not.
 */
export interface Lanes {
  /** Takes work on; with `afterMs`, to be run after that. */
  add(work: Work, afterMs?: number): void
  /** The record gave a running work another epoch. */
  raise(work: Work, epoch: number): void
  /** The epoch under which the delivery is held here, if it is. */
  epochOf(id: string): number | undefined
  /** Held and runnable, running ones included: what counts against the node's buffer. */
  active(): number
  /** Everything held: also what is paused, put off, or being reported. */
  total(): number
  /** Runs that are not over, those that are being reported included. */
  running(): number
  /** Asks again for what a pause refused. */
  wake(): void
  /** Starts what is ready and finds a place. */
  pump(): void
  /** Begins nothing more; resolves when nothing runs. */
  stop(): Promise<void>
}

interface Lane {
  readonly queue: Work[]
  state: 'idle' | 'ready' | 'running' | 'paused'
  refusals: number
}

const pauseRetry = { leastMs: 250, mostMs: 2000 }

export function createLanes(options: LanesOptions): Lanes {
  const { share } = options
  const lanes = new Map<string, Lane>()
  const held = new Map<string, number>()
  const ready: string[] = []
  const timers = new Set<NodeJS.Timeout>()
  const putOff = new Map<string, number>()
  const reporting = new Set<string>()
  let taken = 0
  let running = 0
  let stopped: (() => void) | undefined
  let stopping = false

  function add(work: Work, afterMs = 0): void {
    held.set(work.id, work.epoch)
    putOff.delete(work.id)
    reporting.delete(work.id)
    if (afterMs > 0) tryLater(work, afterMs)
    else enqueue(work)
  }

  function enqueue(work: Work): void {
    const key = laneOf(work)
    const lane: Lane = lanes.get(key) ?? { queue: [], state: 'idle', refusals: 0 }
    lanes.set(key, lane)
    lane.queue.push(work)
    if (lane.state === 'idle') makeReady(key, lane)
  }

  function makeReady(key: string, lane: Lane): void {
    lane.state = 'ready'
    ready.push(key)
    pump()
  }

  function pump(): void {
    while (!stopping && taken < options.concurrency && ready.length > 0) {
      const place = share?.takePlace()
      if (share !== undefined && place === undefined) return
      const key = ready.shift() ?? ''
      const lane = lanes.get(key)
      const work = lane?.queue[0]
      if (lane === undefined || work === undefined) {
        place?.give()
        continue
      }
      work.place = place
      lane.state = 'running'
      start(key, lane, work)
    }
  }

  function start(key: string, lane: Lane, work: Work): void {
    taken += 1
    running += 1
    let left = false
    const leave = (): void => {
      if (left) return
      left = true
      if (held.get(work.id) === work.epoch) reporting.add(work.id)
      leaveLane(key, lane, work)
      roomMade()
    }
    void options.run(work, leave).then((verdict) => {
      running -= 1
      if (verdict.kind === 'paused') pauseLane(key, lane, work)
      else {
        if (!left) leaveLane(key, lane, work)
        conclude(work, verdict)
      }
      if (stopping && running === 0) stopped?.()
      roomMade()
    })
  }

  function roomMade(): void {
    pump()
    options.onRoom()
  }

  function leaveLane(key: string, lane: Lane, work: Work): void {
    taken -= 1
    lane.queue.shift()
    lane.refusals = 0
    if (lane.queue.length > 0) makeReady(key, lane)
    else lanes.delete(key)
    work.place?.give()
  }

  function conclude(work: Work, verdict: Verdict): void {
    if (held.get(work.id) !== work.epoch) return
    reporting.delete(work.id)
    if (verdict.kind === 'again') tryLater(work, verdict.afterMs)
    else held.delete(work.id)
  }

  function tryLater(work: Work, afterMs: number): void {
    putOff.set(work.id, work.epoch)
    after(afterMs, () => {
      if (putOff.get(work.id) !== work.epoch) return // it came back under a newer epoch
      putOff.delete(work.id)
      enqueue(work)
    })
  }

  function pauseLane(key: string, lane: Lane, work: Work): void {
    taken -= 1
    lane.state = 'paused'
    lane.refusals += 1
    work.place?.give()
    after(backoffMs(pauseRetry, lane.refusals), () => resume(key, lane))
  }

  function resume(key: string, lane: Lane): void {
    if (lane.state === 'paused') makeReady(key, lane)
  }

  function after(delayMs: number, action: () => void): void {
    if (stopping) return
    const timer = setTimeout(() => {
      timers.delete(timer)
      action()
    }, delayMs)
    timers.add(timer)
  }

  function waitingBehindPause(): number {
    let count = 0
    for (const lane of lanes.values()) if (lane.state === 'paused') count += lane.queue.length
    return count
  }

  return {
    add,
    raise: (work, epoch) => {
      if (held.get(work.id) === work.epoch) held.set(work.id, epoch)
      work.epoch = epoch
    },
    epochOf: (id) => held.get(id),
    active: () => held.size - putOff.size - reporting.size - waitingBehindPause(),
    total: () => held.size,
    running: () => running,
    wake: () => {
      for (const [key, lane] of lanes) resume(key, lane)
    },
    pump,
    stop: () => {
      stopping = true
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
      if (running === 0) return Promise.resolve()
      return new Promise((resolve) => {
        stopped = resolve
      })
    },
  }
}

function laneOf(work: Work): string {
  return JSON.stringify([work.message.conversation, work.session ?? null])
}
