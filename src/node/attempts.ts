import { randomUUID } from 'node:crypto'
import { backoffMs } from '../contract/backoff.js'
import { type ErrorCode, isHoldfastError } from '../contract/errors.js'
import type { Outcome } from '../contract/outcomes.js'
import type { OnPoint } from '../contract/points.js'
import type { BeginItem, StepDone, StepRefused, StepResult } from '../contract/steps.js'
import { type AttemptNode, attemptOf } from './attempt.js'
import type { BlockingMeter } from './blocking.js'
import type { Executor } from './executor.js'
import { describe } from './executors/function.js'
import type { Arrival, Verdict, Work } from './lanes.js'
import { runWithLimit } from './limit.js'
import type { NodeLog } from './log.js'
import type { Mirror } from './mirror.js'
import { inForm } from './outcome-form.js'
import type { OutgoingReport, Reports } from './reports.js'
import { inSpan } from './tracing.js'

export interface AttemptsOptions extends AttemptNode {
  readonly mirror: Mirror
  readonly executor: Executor
  readonly reports: Reports
  /** Asks for permission to execute, until there is an answer. */
  begin(item: BeginItem): Promise<StepResult>
  /** The record gave a running delivery another epoch. */
  raise(work: Work, epoch: number): void
  /** Takes up once more, after a while, what nothing runs of. */
  tryAgain(work: Work, afterMs: number): void
  readonly timeLimitMs: number
  readonly graceMs: number
  /** What the hub takes, as of the last join. */
  maxResultBytes(): number | undefined
  readonly blocking: BlockingMeter
  readonly log: NodeLog
  readonly onPoint: OnPoint | undefined
}

/** Runs one delivery: grant, begin, start mark, execution, outcome, report. */
export interface Attempts {
  /** `leave` is called once the outcome is durable here, before the record has it. */
  run(work: Work, leave: () => void): Promise<Verdict>
  /** Handlers that still run, those past their time limit included. */
  running(): number
  /** Aborts every running handler; their outcomes are reported as they come. */
  abort(reason: string): void
}

export const redrive = { leastMs: 500, mostMs: 60_000 }
const over: Verdict = { kind: 'over' }
/** Refusals of a repeated begin that a lifted fence takes away; nothing moved by them. */
const fenced: readonly ErrorCode[] = ['PAUSED', 'HELD', 'BLOCKED']

interface Handled {
  readonly outcome: Outcome
  /** The handler has returned: nothing of it runs any more. */
  readonly ended: boolean
}

export function createAttempts(options: AttemptsOptions): Attempts {
  const { mirror, reports, log, onPoint } = options
  const handlers = new Set<AbortController>()

  async function run(work: Work, leave: () => void): Promise<Verdict> {
    return work.arrival === undefined
      ? await runOwned(work, leave)
      : await runArriving(work, work.arrival, leave)
  }

  /** Begins in the call that hands it off, where that has not been made yet. */
  async function runArriving(work: Work, arrival: Arrival, leave: () => void): Promise<Verdict> {
    const grant = arrival.open ? randomUUID() : undefined
    if (grant !== undefined) arrival.join(grant, mintFirst(work, grant))
    const { accepted, begun } = await arrival.answer
    work.arrival = undefined
    if (!accepted) {
      if (grant !== undefined) await forgetGrant(work, grant)
      return over
    }
    if (grant === undefined || begun === undefined) return await runOwned(work, leave)
    return begun.ok ? await execute(work, grant, begun, leave) : await refused(work, grant, begun)
  }

  /** False where an earlier grant is still open: that is concluded after the handoff. */
  async function mintFirst(work: Work, grant: string): Promise<boolean> {
    try {
      await mirror.mintGrant({ grant, delivery: work.id, epoch: work.epoch })
    } catch (error) {
      if (!isHoldfastError(error, 'GRANT_OPEN')) throw error
      return false
    }
    onPoint?.('grant.stored')
    return true
  }

  async function runOwned(work: Work, leave: () => void): Promise<Verdict> {
    const grant = work.grant ?? (await mint(work))
    if (grant === undefined) return over
    if (work.replay) return await runAgain(work, grant, leave)
    const answer = await options.begin({ id: work.id, epoch: work.epoch, grant })
    if (!answer.ok) return await refused(work, grant, answer)
    work.grant = undefined
    return await execute(work, grant, answer, leave)
  }

  /** What an earlier process began, under its grant: the handler is declared idempotent. */
  async function runAgain(
    work: Work,
    grant: string,
    leave: () => void,
    epoch = work.epoch,
  ): Promise<Verdict> {
    const answer = await options.begin({ id: work.id, epoch, grant, idempotent: true })
    if (answer.ok) {
      options.raise(work, answer.epoch)
      return await execute(work, grant, answer, leave)
    }
    // The process before this one may have begun it again, and died before it noted the new epoch.
    const isOurs = answer.owner === options.node && answer.epoch !== undefined
    if (answer.code === 'STALE_EPOCH' && isOurs && answer.epoch > epoch) {
      return await runAgain(work, grant, leave, answer.epoch)
    }
    if (answer.state === 'delivered' && fenced.includes(answer.code)) return { kind: 'paused' }
    log.warn({ delivery: work.id, code: answer.code, detail: answer.detail }, 'not begun again')
    // Somebody else has settled it, and nothing of it is kept here; or it stays unknown, and that is said.
    if (answer.code === 'ALREADY_SETTLED') await forgetGrant(work, grant)
    else if (await reports.settleOldGrants(work.id)) dropCopy(work)
    return over
  }

  async function forgetGrant(work: Work, grant: string): Promise<void> {
    await mirror.dropGrant(grant)
    dropCopy(work)
  }

  /** A grant is durable in the mirror before it is asked for. */
  async function mint(work: Work): Promise<string | undefined> {
    const grant = randomUUID()
    const minted = { grant, delivery: work.id, epoch: work.epoch }
    try {
      await mirror.mintGrant(minted)
    } catch (error) {
      if (!isHoldfastError(error, 'GRANT_OPEN')) throw error
      if (!(await reports.settleOldGrants(work.id))) {
        log.warn({ delivery: work.id }, 'an earlier attempt of ours is still open; nothing is begun')
        return undefined
      }
      await mirror.mintGrant(minted)
    }
    onPoint?.('grant.stored')
    return grant
  }

  async function refused(work: Work, grant: string, answer: StepRefused): Promise<Verdict> {
    if (answer.code === 'PAUSED') {
      work.grant = grant
      return { kind: 'paused' }
    }
    log.info(
      { delivery: work.id, code: answer.code, epoch: answer.epoch, owner: answer.owner },
      'begin refused',
    )
    await forgetGrant(work, grant)
    return over
  }

  /** Not waited for: a copy that nobody needs any more is dropped by the next start at the latest. */
  function dropCopy(work: Work): void {
    mirror.dropCopy(work.id, work.epoch).catch((error: unknown) => {
      log.error({ delivery: work.id, error: String(error) }, 'a copy stays in the mirror')
    })
  }

  async function execute(work: Work, grant: string, answer: StepDone, leave: () => void): Promise<Verdict> {
    const number = answer.attempt ?? 1
    const lent = work.place?.enter()
    if (lent !== undefined) await lent
    if (work.replay) await mirror.markRestarted(grant, number, work.epoch)
    else await mirror.markStarted(grant, number)
    onPoint?.('start.marked')
    const { outcome, ended } = await runHandler(work, grant, number)
    onPoint?.('execute.left')
    const report = {
      grant,
      delivery: work.id,
      attempt: number,
      outcome: provenBy(work, outcome),
      final: ended,
    }
    return await conclude(work, report, leave)
  }

  async function runHandler(work: Work, grant: string, number: number): Promise<Handled> {
    const controller = new AbortController()
    handlers.add(controller)
    const attempt = attemptOf(options, work, number, controller.signal)
    onPoint?.('execute.entered')
    const outcome = await runWithLimit(controller, options, {
      run: () =>
        timed(options.blocking, () =>
          inSpan(attempt, () =>
            caught(options.maxResultBytes(), (maxResultBytes) =>
              options.executor.run(attempt, {
                childStarted: (child) => mirror.recordChild(grant, child),
                maxResultBytes,
              }),
            ),
          ),
        ),
      ended: () => handlers.delete(controller),
      late: (outcome) => reportLate(work, grant, number, outcome),
    })
    return { outcome, ended: !handlers.has(controller) }
  }

  /** How a handler that was given up on ended: a second report, under its own key. */
  async function reportLate(work: Work, grant: string, number: number, late: Outcome): Promise<void> {
    const outcome = provenBy(work, late)
    try {
      const report = { grant, delivery: work.id, attempt: number, outcome, final: true, pass: 1 }
      const verdict = await conclude(work, report)
      if (verdict.kind === 'again') options.tryAgain(work, verdict.afterMs)
    } catch (error) {
      log.error(
        { attempt: `${work.id}/${number}`, error: String(error) },
        'a late outcome waits in the mirror',
      )
    }
  }

  async function conclude(work: Work, report: OutgoingReport, onStored?: () => void): Promise<Verdict> {
    const { outcome, attempt } = report
    const answer = await reports.send(report, onStored)
    log.debug({ attempt: `${work.id}/${attempt}`, outcome: outcome.kind }, 'attempt reported')
    const mine = answer.ok && answer.state === 'delivered' && answer.epoch === work.epoch
    if (outcome.kind === 'not_sent' && mine) {
      work.tries += 1
      const afterMs = backoffMs(redrive, work.tries)
      await mirror.putOff(work.id, work.tries, Date.now() + afterMs)
      log.info(
        { delivery: work.id, reason: outcome.errorCode, tries: work.tries, afterMs },
        'not sent; tried again',
      )
      return { kind: 'again', afterMs }
    }
    // Of an unknown one the copy stays: a later process may have to ask for it, or begin it again.
    if (outcome.kind !== 'outcome_unknown') dropCopy(work)
    return over
  }

  return {
    run: async (work, leave) => {
      try {
        return await run(work, leave)
      } catch (error) {
        // The mirror keeps what was begun; the next process of this node reports it.
        log.error({ delivery: work.id, error: String(error) }, 'the attempt was cut off')
        return over
      }
    },
    running: () => handlers.size,
    abort: (reason) => {
      for (const controller of handlers) controller.abort(new Error(reason))
    },
  }
}

/** A replay that sent nothing says so of itself alone: what the run before it did is as unknown as it was. */
function provenBy(work: Work, outcome: Outcome): Outcome {
  if (!work.replay || outcome.kind !== 'not_sent') return outcome
  return { ...outcome, kind: 'outcome_unknown' }
}

/**
 * What an executor answers, in the form of a report. One that throws, which it should not, has failed: what it did until
 * then nobody can tell.
 */
async function caught(
  maxBytes: number | undefined,
  run: (maxBytes: number | undefined) => Promise<unknown>,
): Promise<Outcome> {
  try {
    return inForm(await run(maxBytes), 'executor_answer', maxBytes)
  } catch (error) {
    const errorJson = JSON.stringify(describe(error))
    return { kind: 'outcome_unknown', errorCode: 'executor_failed', errorJson }
  }
}

/** Starts a handler and notes how long its synchronous part held the event loop. */
function timed(blocking: BlockingMeter, start: () => Promise<Outcome>): Promise<Outcome> {
  const startedAt = performance.now()
  const running = start()
  blocking.note('handler', performance.now() - startedAt)
  return running
}
