import type { HoldfastError } from '../contract/errors.js'
import { isHoldfastError } from '../contract/errors.js'
import type { HeartbeatReply } from '../contract/steps.js'
import type { NodeLog } from './log.js'
import { isFinal } from './persistence.js'

export interface HeartbeatsOptions {
  beat(): Promise<HeartbeatReply>
  rejoin(): Promise<unknown>
  /** Told of an error after which this process must not go on. */
  onFatal(error: HoldfastError): void
  readonly log: NodeLog
}

/** What the hub's settings say of heartbeats. */
type Pace = Pick<HeartbeatReply, 'heartbeatMs' | 'staleAfterMs'>

/** Beats that fit at least into the silence after which a node is taken for gone: one may be missed. */
const beatsWithinStale = 3

/** The hub's interval, or the longest at which a node that lives is not taken for gone. */
function intervalOf({ heartbeatMs, staleAfterMs }: Pace): number {
  return Math.min(heartbeatMs, Math.floor(staleAfterMs / beatsWithinStale))
}

/** Says at the hub's pace that this process lives, whatever its work does. */
export interface Heartbeats {
  /** Beats at the pace that the hub asks for, and follows it when it changes. */
  start(pace: Pace): void
  stop(): Promise<void>
}

export function createHeartbeats(options: HeartbeatsOptions): Heartbeats {
  let everyMs = 2000
  let timer: NodeJS.Timeout | undefined
  let beating: Promise<void> = Promise.resolve()
  let stopped = false

  function schedule(): void {
    if (stopped) return
    timer = setTimeout(() => {
      beating = beatOnce().then(schedule)
    }, everyMs)
  }

  async function beatOnce(): Promise<void> {
    try {
      everyMs = intervalOf(await options.beat())
    } catch (error) {
      await missed(error)
    }
  }

  async function missed(error: unknown): Promise<void> {
    if (isFinal(error)) {
      if (!stopped) options.onFatal(error)
      return
    }
    options.log.warn({ error: String(error) }, 'heartbeat not answered')
    if (isHoldfastError(error, 'NOT_JOINED')) await options.rejoin().catch(missed)
  }

  return {
    start: (pace) => {
      everyMs = intervalOf(pace)
      schedule()
    },
    stop: async () => {
      stopped = true
      clearTimeout(timer)
      await beating
    },
  }
}
