import { setTimeout as sleep } from 'node:timers/promises'
import { wantsColour } from './output.js'

/** Told how far work has come: so much of so much. */
export type OnProgress = (done: number, total: number) => void

/** Whether long work shows its course: on a terminal that can redraw a line, and never beside JSON. */
function showsProgress(json: boolean): boolean {
  return !json && wantsColour(process.stderr)
}

/**
 * Shows a bar on stderr while the work goes on, from when it first tells how far it is; it is cleared at the end.
 * Where none is shown the work is handed nothing, and need not measure.
 */
export async function withProgress<Answer>(
  what: string,
  json: boolean,
  work: (onProgress?: OnProgress) => Promise<Answer>,
): Promise<Answer> {
  if (!showsProgress(json)) return await work()
  // Only here: most commands have nothing to show.
  const { SingleBar } = (await import('cli-progress')).default
  const bar = new SingleBar({
    stream: process.stderr,
    format: `${what} {bar} {percentage}% {value} of {total}`,
    barsize: 30,
    barCompleteChar: '#',
    barIncompleteChar: '.',
    clearOnComplete: true,
    // A command that is interrupted dies of the signal: there is to be nothing that had to be restored.
    hideCursor: false,
    gracefulExit: false,
  })
  let isShown = false
  const onProgress: OnProgress = (done, total) => {
    const most = Math.max(total, done)
    if (!isShown) bar.start(most, done)
    else bar.setTotal(most)
    isShown = true
    bar.update(done)
  }
  try {
    return await work(onProgress)
  } finally {
    if (isShown) bar.stop()
  }
}

const lookEveryMs = 500

/**
 * The course of a call that does not tell its own: while it is under way, `left` says how much is still to be done. What
 * goes wrong with looking is none of the call's business.
 */
export async function whileMeasured<Answer>(
  onProgress: OnProgress | undefined,
  left: () => Promise<number>,
  work: () => Promise<Answer>,
): Promise<Answer> {
  if (onProgress === undefined) return await work()
  const total = await left().catch(() => 0)
  const over = new AbortController()
  void look(onProgress, left, total, over.signal)
  try {
    return await work()
  } finally {
    over.abort()
  }
}

async function look(
  onProgress: OnProgress,
  left: () => Promise<number>,
  total: number,
  signal: AbortSignal,
): Promise<void> {
  if (total > 0) onProgress(0, total)
  while (!signal.aborted) {
    await sleep(lookEveryMs, undefined, { signal }).catch(() => undefined)
    const now = signal.aborted ? undefined : await left().catch(() => undefined)
    if (now !== undefined && total > 0 && !signal.aborted) onProgress(Math.max(0, total - now), total)
  }
}
