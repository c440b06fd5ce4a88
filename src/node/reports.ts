import type { ErrorCode } from '../contract/errors.js'
import type { Outcome } from '../contract/outcomes.js'
import type { OnPoint } from '../contract/points.js'
import type { ReportItem, StepResult } from '../contract/steps.js'
import { cut } from './executors/function.js'
import type { NodeLog } from './log.js'
import type { Mirror, StoredGrant } from './mirror.js'

/** An outcome on its way into the record. */
export interface OutgoingReport {
  readonly grant: string
  readonly delivery: string
  /** Missing where the node never learned the number of the attempt. */
  readonly attempt?: number
  readonly outcome: Outcome
  /** The executor has ended: nothing more will come of this attempt. */
  readonly final: boolean
  /** Tells one unknown report from the next of the same reason. */
  readonly pass?: number | string
}

/** Outcomes are in the mirror before they are sent, and leave it when the record has answered. */
export interface Reports {
  /** Stores and sends a report until it is answered; `onStored` is called in between, once it is durable. */
  send(report: OutgoingReport, onStored?: () => void): Promise<StepResult>
  /** Sends what an earlier process stored and was not answered; the mirror holds nothing of what that settled then. */
  sendUnanswered(): Promise<void>
  /** True when no grant of the delivery is unsettled any more: someone else settled the attempts. */
  settleOldGrants(delivery: string): Promise<boolean>
}

export interface ReportsOptions {
  readonly mirror: Mirror
  /** Sends one report, batched with its neighbours, until there is an answer. */
  report(item: ReportItem): Promise<StepResult>
  readonly log: NodeLog
  readonly onPoint: OnPoint | undefined
}

interface Keyed extends OutgoingReport {
  readonly key: string
}

export function createReports(options: ReportsOptions): Reports {
  const { mirror, log, onPoint } = options
  let asked = 0
  const forgetting = new Set<Promise<void>>()

  /** One key per report: an unknown and the result that comes later are two. */
  function keyOf(report: OutgoingReport): string {
    if (report.outcome.kind !== 'outcome_unknown') return `${report.grant}.outcome`
    const reason = report.outcome.errorCode.replace(/[^\w-]/g, '_').slice(0, 100)
    const pass = report.pass === undefined ? '' : `-${report.pass}`
    return `${report.grant}.unknown-${mirror.incarnation}-${reason}${pass}`
  }

  async function send(report: OutgoingReport, onStored?: () => void): Promise<StepResult> {
    const keyed = { ...report, key: keyOf(report) }
    await mirror.recordReport(keyed)
    onPoint?.('outcome.stored')
    onStored?.()
    return await sendStored(keyed)
  }

  async function sendStored(report: Keyed): Promise<StepResult> {
    const id = report.attempt === undefined ? report.delivery : `${report.delivery}/${report.attempt}`
    const { grant, key, outcome, final } = report
    const ended = outcome.kind === 'outcome_unknown' && final
    const answer = await options.report({ id, grant, key, outcome, ...(ended && { ended }) })
    if (!answer.ok && answer.code === 'RESULT_TOO_LARGE') return await sendShortened(report, answer.detail)
    if (!answer.ok && answer.code === 'INVALID_ARGUMENT' && !report.key.endsWith(refusedEnding))
      return await sendRefused(report, answer.detail)
    if (!answer.ok) log.warn({ attempt: id, code: answer.code, detail: answer.detail }, 'report not applied')
    forget(report.key, isSettled(report, answer))
    return answer
  }

  /** Not waited for: a report that is still there after a crash is sent again, and answered as recorded. */
  function forget(key: string, settled: boolean): void {
    const forgotten = mirror.reportAnswered(key, { settled }).then(
      () => onPoint?.('report.settled'),
      (error: unknown) => log.error({ key, error: String(error) }, 'an answered report stays in the mirror'),
    )
    forgetting.add(forgotten)
    void forgotten.finally(() => forgetting.delete(forgotten))
  }

  /** What happened is recorded even where its body is over the limit: the body is left out, and says so. */
  async function sendShortened(report: Keyed, limit: string | undefined): Promise<StepResult> {
    const body = JSON.stringify({ omitted: `the body was over the limit (${limit ?? ''})` })
    const outcome: Outcome =
      report.outcome.kind === 'result'
        ? { kind: 'result', result: body }
        : { ...report.outcome, errorJson: body }
    return await sendInstead(report, { ...report, outcome, key: `${report.key}-shortened` })
  }

  /** What a hub takes in no form is not known there: it is listed as unknown, with what was to be reported. */
  async function sendRefused(report: Keyed, detail = ''): Promise<StepResult> {
    const { kind } = report.outcome
    log.error({ delivery: report.delivery, outcome: kind, detail }, 'a report was refused; it is unknown now')
    const errorJson = JSON.stringify({ refused: detail, outcome: wordsOf(report.outcome) })
    const outcome: Outcome = { kind: 'outcome_unknown', errorCode: 'report_refused', errorJson }
    return await sendInstead(report, { ...report, outcome, key: `${report.key}${refusedEnding}` })
  }

  async function sendInstead(report: Keyed, other: Keyed): Promise<StepResult> {
    await mirror.recordReport(other)
    forget(report.key, false)
    return await sendStored(other)
  }

  async function sendUnanswered(): Promise<void> {
    await Promise.all(mirror.recovery().reports.map(sendStored))
    await Promise.all(forgetting)
  }

  async function settleOldGrants(delivery: string): Promise<boolean> {
    const grants = mirror.recovery().grants.filter((grant) => grant.delivery === delivery)
    // A key of its own each time: a repeat would be answered as the first time, whatever came since.
    asked += 1
    const answers = await Promise.all(
      grants.map((grant) => send({ ...stillUnknown(grant), pass: `asked-${asked}` })),
    )
    return answers.every((answer) => !answer.ok && closedFor.includes(answer.code))
  }

  return { send, sendUnanswered, settleOldGrants }
}

const refusedEnding = '-refused'

/** So much of an outcome as tells what it was. */
function wordsOf(outcome: Outcome): object {
  if (outcome.kind === 'result')
    return { kind: outcome.kind, result: cut(String(outcome.result), maxWordChars) }
  return { kind: outcome.kind, errorCode: cut(String(outcome.errorCode), maxWordChars) }
}

const maxWordChars = 1000

const closedFor: readonly ErrorCode[] = [
  'ALREADY_SETTLED',
  'NOT_BEGUN',
  'NOT_OWNER',
  'ATTEMPT_NOT_FOUND',
  'DELIVERY_NOT_FOUND',
]

/** Whether the grant has done its work: the record has an outcome, or wants none from it any more. */
function isSettled(report: OutgoingReport, answer: StepResult): boolean {
  if (report.outcome.kind !== 'outcome_unknown') return true
  return !answer.ok && closedFor.includes(answer.code)
}

/** Says again what was said last. */
export function stillUnknown(grant: StoredGrant): OutgoingReport {
  const attempt = grant.attempt === undefined ? {} : { attempt: grant.attempt }
  const outcome: Outcome = grant.unknown ?? { kind: 'outcome_unknown', errorCode: 'still_unknown' }
  return { grant: grant.grant, delivery: grant.delivery, ...attempt, outcome, final: true }
}
