import type { Outcome } from '../contract/outcomes.js'

export interface Limits {
  /** After this many milliseconds the handler's signal is aborted. */
  readonly timeLimitMs: number
  /** How long an aborted handler may take to prove what it did. */
  readonly graceMs: number
}

export interface LimitedRun {
  run(): Promise<Outcome>
  /** The handler has returned. */
  ended(): void
  /** The outcome of a handler that had been given up on. */
  late(outcome: Outcome): void
}

/**
 * Runs a handler under its time limit (contract section 8): at the limit its signal is aborted, and what it
 * cannot prove within the grace is `outcome_unknown`. A handler that goes on is not forgotten: what it
 * comes back with is handed to `late`.
 */
export async function runWithLimit(
  controller: AbortController,
  limits: Limits,
  handler: LimitedRun,
): Promise<Outcome> {
  let givenUp = false
  let giveUp: NodeJS.Timeout | undefined
  const limit = setTimeout(() => controller.abort(timeLimitReached(limits.timeLimitMs)), limits.timeLimitMs)
  const finished = handler.run().then((outcome) => {
    handler.ended()
    if (givenUp) handler.late(outcome)
    return outcome
  })
  const abandoned = new Promise<Outcome>((resolve) => {
    controller.signal.addEventListener('abort', () => {
      giveUp = setTimeout(() => {
        givenUp = true
        resolve(timedOut(controller.signal, 'the handler did not return'))
      }, limits.graceMs)
    })
  })
  const outcome = await Promise.race([finished, abandoned])
  clearTimeout(limit)
  clearTimeout(giveUp)
  return outcome
}

function timeLimitReached(timeLimitMs: number): DOMException {
  return new DOMException(`the time limit of ${timeLimitMs} ms was reached`, 'TimeoutError')
}

function timedOut(signal: AbortSignal, detail: string): Outcome {
  const why = signal.reason instanceof Error ? signal.reason.message : 'aborted'
  return { kind: 'outcome_unknown', errorCode: 'timed_out', errorJson: JSON.stringify({ why, detail }) }
}
