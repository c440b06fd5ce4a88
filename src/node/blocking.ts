import type { NodeLog } from './log.js'

/** What held the event loop: everything else of the process, heartbeats included, waited for it. */
export type BlockingCause = 'mirror' | 'handler'

/** What held the event loop since the figures were last taken. Milliseconds. */
export interface BlockingFigures {
  readonly sumMs: number
  readonly longestMs: number
}

/** What the commits of the mirror took since the figures were last taken. Milliseconds. */
export interface MirrorFigures extends BlockingFigures {
  readonly commits: number
}

/**
 * Durable work on a shared event loop is a latency hazard: synchronous mirror commits and the synchronous
 * part of handlers are timed. One that is too long is logged by itself; a window logs its sum.
 */
export interface BlockingMeter {
  note(cause: BlockingCause, tookMs: number): void
  /** For a heartbeat: the figures since the last time. */
  take(): BlockingFigures
  /** For a heartbeat: what the mirror's commits took since the last time. */
  takeMirror(): MirrorFigures
  stop(): void
}

const longMs = 25
const windowMs = 10_000
const worthTellingMs = 1
const noCommits: MirrorFigures = { commits: 0, sumMs: 0, longestMs: 0 }

/** `windowMs` is a seam for tests; 10 s when absent. */
export function createBlockingMeter(
  log: NodeLog,
  options: { readonly windowMs?: number } = {},
): BlockingMeter {
  const windowLength = options.windowMs ?? windowMs
  let since: BlockingFigures = { sumMs: 0, longestMs: 0 }
  let mirrorSince: MirrorFigures = noCommits
  let window: Record<BlockingCause, number> | undefined
  let timer: NodeJS.Timeout | undefined

  function closeWindow(): void {
    if (window === undefined) return
    const sumMs = window.mirror + window.handler
    if (sumMs > worthTellingMs) {
      const figures = {
        windowMs: windowLength,
        sumMs: round(sumMs),
        mirrorMs: round(window.mirror),
        handlerMs: round(window.handler),
      }
      log.info(figures, 'time that synchronous work held the event loop')
    }
    window = undefined
  }

  return {
    note: (cause, tookMs) => {
      since = withOne(since, tookMs)
      if (cause === 'mirror') {
        mirrorSince = { ...withOne(mirrorSince, tookMs), commits: mirrorSince.commits + 1 }
      }
      if (tookMs > longMs) log.warn({ cause, tookMs: round(tookMs) }, 'the event loop was held')
      if (window === undefined) {
        window = { mirror: 0, handler: 0 }
        timer = setTimeout(closeWindow, windowLength).unref()
      }
      window[cause] += tookMs
    },
    take: () => {
      const taken = since
      since = { sumMs: 0, longestMs: 0 }
      return taken
    },
    takeMirror: () => {
      const taken = mirrorSince
      mirrorSince = noCommits
      return taken
    },
    stop: () => {
      clearTimeout(timer)
      closeWindow()
    },
  }
}

function withOne(figures: BlockingFigures, tookMs: number): BlockingFigures {
  return { sumMs: figures.sumMs + tookMs, longestMs: Math.max(figures.longestMs, tookMs) }
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100
}
