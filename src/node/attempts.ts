import { randomUUID } from 'node:crypto'
import { backoffMs } from '../contract/backoff.js'
import { isHoldfastError } from '../contract/errors.js'
import type { Outcome } from '../contract/outcomes.js'
import type { OnPoint } from '../contract/points.js'
import type { BeginItem, StepDone, StepRefused, StepResult } from '../contract/steps.js'
import type { BlockingMeter } from './blocking.js'
import type { Executor } from './executor.js'
import type { Verdict, Work } from './lanes.js'
import { runWithLimit } from './limit.js'
import type { NodeLog } from './log.js'
import type { Mirror } from './mirror.js'
import type { Reports } from './reports.js'
import { inSpan } from './tracing.js'

export interface AttemptsOptions {
  readonly host: string
  readonly node: string
  readonly mirror: Mirror
  readonly executor: Executor
  readonly reports: Reports
  /** Asks for permission to execute, until there is an answer. */
  begin(item: BeginItem): Promise<StepResult>
  /** The epoch under which the delivery is held now: a later one keeps its copy. */
  epochOf(id: string): number | undefined
  readonly timeLimitMs: number
  readonly graceMs: number
  readonly blocking: BlockingMeter
  readonly log: NodeLog
  readonly onPoint: OnPoint | undefined
}

/** Runs one delivery: grant, begin, start mark, execution, outcome, report. */
export interface Attempts {
  run(work: Work): Promise<Verdict>
  /** Handlers that still run, those past their time limit included. */
  running(): number
  /** Aborts every running handler; their outcomes are reported as they come. */
  abort(reason: string): void
}

export const redrive = { leastMs: 500, mostMs: 60_000 }
const over: Verdict = { kind: 'over' }

export function createAttempts(options: AttemptsOptions): Attempts {
  const { mirror, reports, log, onPoint } = options
  const handlers = new Set<AbortController>()

  async function run(work: Work): Promise<Verdict> {
    const grant = work.grant ?? (await mint(work))
    if (grant === undefined) return over
    const answer = await options.begin({ id: work.id, epoch: work.epoch, grant })
    if (!answer.ok) return await refused(work, grant, answer)
    work.grant = undefined
    return await execute(work, grant, answer)
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
    await mirror.dropGrant(grant)
    dropCopy(work)
    return over
  }

  /** Not waited for: a copy that nobody needs any more is dropped by the next start at the latest. */
  function dropCopy(work: Work): void {
    const present = options.epochOf(work.id)
    if (present !== undefined && present !== work.epoch) return
    mirror.dropCopies([work.id]).catch((error: unknown) => {
      log.error({ delivery: work.id, error: String(error) }, 'a copy stays in the mirror')
    })
  }

  async function execute(work: Work, grant: string, answer: StepDone): Promise<Verdict> {
    const number = answer.attempt ?? 1
    await mirror.markStarted(grant, number)
    onPoint?.('start.marked')
    const outcome = await runHandler(work, grant, number)
    onPoint?.('execute.left')
    return await conclude(work, grant, number, outcome)
  }

  async function runHandler(work: Work, grant: string, number: number): Promise<Outcome> {
    const controller = new AbortController()
    handlers.add(controller)
    const attempt = {
      id: `${work.id}/${number}`,
      deliveryId: work.id,
      number,
      epoch: work.epoch,
      host: options.host,
      node: options.node,
      target:
        work.session === undefined ? { host: options.host } : { host: options.host, session: work.session },
      message: work.message,
      payload: work.payload,
      signal: controller.signal,
    }
    onPoint?.('execute.entered')
    return await runWithLimit(controller, options, {
      run: () =>
        timed(options.blocking, () =>
          inSpan(attempt, () =>
            options.executor.run(attempt, { childStarted: (child) => mirror.recordChild(grant, child) }),
          ),
        ),
      ended: () => handlers.delete(controller),
      late: (outcome) => reportLate(work, grant, number, outcome),
    })
  }

  /** An outcome that came after the attempt was reported unknown: a second report, under its own key. */
  function reportLate(work: Work, grant: string, number: number, outcome: Outcome): void {
    if (outcome.kind === 'outcome_unknown') return
    reports
      .send({ grant, delivery: work.id, attempt: number, outcome, final: true })
      .catch((error: unknown) => {
        log.error(
          { attempt: `${work.id}/${number}`, error: String(error) },
          'a late outcome waits in the mirror',
        )
      })
  }

  async function conclude(work: Work, grant: string, number: number, outcome: Outcome): Promise<Verdict> {
    const answer = await reports.send({ grant, delivery: work.id, attempt: number, outcome, final: true })
    log.debug({ attempt: `${work.id}/${number}`, outcome: outcome.kind }, 'attempt reported')
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
    dropCopy(work)
    return over
  }

  return {
    run: async (work) => {
      try {
        return await run(work)
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

/** Starts a handler and notes how long its synchronous part held the event loop. */
function timed(blocking: BlockingMeter, start: () => Promise<Outcome>): Promise<Outcome> {
  const startedAt = performance.now()
  const running = start()
  blocking.note('handler', performance.now() - startedAt)
  return running
}
