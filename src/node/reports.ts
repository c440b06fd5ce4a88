import type { ErrorCode } from '../contract/errors.js'
import type { Outcome } from '../contract/outcomes.js'
import type { OnPoint } from '../contract/points.js'
import type { ReportItem, StepResult } from '../contract/steps.js'
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
}

/** Outcomes are in the mirror before they are sent, and leave it when the record has answered. */
export interface Reports {
  /** Stores and sends a report until it is answered. */
  send(report: OutgoingReport): Promise<StepResult>
  /** What an earlier process left: unsent reports go out, grants without an outcome are concluded. */
  recover(treeAlive: (grant: StoredGrant) => boolean): Promise<void>
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

  /** One key per report: an unknown and the result that comes later are two. */
  function keyOf(report: OutgoingReport): string {
    if (report.outcome.kind !== 'outcome_unknown') return `${report.grant}.outcome`
    const reason = report.outcome.errorCode.replace(/[^\w-]/g, '_').slice(0, 100)
    return `${report.grant}.unknown-${mirror.incarnation}-${reason}`
  }

  async function send(report: OutgoingReport): Promise<StepResult> {
    const keyed = { ...report, key: keyOf(report) }
    await mirror.recordReport(keyed)
    onPoint?.('outcome.stored')
    return await sendStored(keyed)
  }

  async function sendStored(report: Keyed): Promise<StepResult> {
    const id = report.attempt === undefined ? report.delivery : `${report.delivery}/${report.attempt}`
    const answer = await options.report({ id, grant: report.grant, key: report.key, outcome: report.outcome })
    if (!answer.ok && answer.code === 'RESULT_TOO_LARGE') return await sendShortened(report, answer.detail)
    if (!answer.ok) log.warn({ attempt: id, code: answer.code, detail: answer.detail }, 'report not applied')
    forget(report.key, isSettled(report, answer))
    return answer
  }

  /** Not waited for: a report that is still there after a crash is sent again, and answered as recorded. */
  function forget(key: string, settled: boolean): void {
    mirror.reportAnswered(key, { settled }).then(
      () => onPoint?.('report.settled'),
      (error: unknown) => log.error({ key, error: String(error) }, 'an answered report stays in the mirror'),
    )
  }

  /** What happened is recorded even where its body is over the limit: the body is left out, and says so. */
  async function sendShortened(report: Keyed, limit: string | undefined): Promise<StepResult> {
    const body = JSON.stringify({ omitted: `the body was over the limit (${limit ?? ''})` })
    const outcome: Outcome =
      report.outcome.kind === 'result'
        ? { kind: 'result', result: body }
        : { ...report.outcome, errorJson: body }
    const shortened = { ...report, outcome, key: `${report.key}-shortened` }
    await mirror.recordReport(shortened)
    forget(report.key, false)
    return await sendStored(shortened)
  }

  async function recover(treeAlive: (grant: StoredGrant) => boolean): Promise<void> {
    const { reports, grants } = mirror.recovery()
    const reported = new Set(reports.map((report) => report.grant))
    await Promise.all(reports.map(sendStored))
    const open = grants.filter((grant) => grant.endedAtMs === undefined && !reported.has(grant.grant))
    await Promise.all(open.map((grant) => send(conclusionOf(grant, treeAlive))))
  }

  async function settleOldGrants(delivery: string): Promise<boolean> {
    const grants = mirror.recovery().grants.filter((grant) => grant.delivery === delivery)
    const answers = await Promise.all(grants.map((grant) => send(stillUnknown(grant))))
    return answers.every((answer) => !answer.ok && closedFor.includes(answer.code))
  }

  return { send, recover, settleOldGrants }
}

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

/**
 * What a dead process's grant proves: without a start mark nothing ever ran; with one and without an end
 * nobody can tell.
 */
function conclusionOf(grant: StoredGrant, treeAlive: (grant: StoredGrant) => boolean): OutgoingReport {
  const attempt = grant.attempt === undefined ? {} : { attempt: grant.attempt }
  const about = { grant: grant.grant, delivery: grant.delivery, ...attempt }
  if (grant.startedAtMs === undefined) {
    return { ...about, outcome: { kind: 'not_sent', errorCode: 'never_started' }, final: true }
  }
  const children = grant.children.map((child) => ({ pid: child.pid, group: child.group }))
  const errorJson = JSON.stringify({
    startedAtMs: grant.startedAtMs,
    stillRunning: treeAlive(grant),
    children,
  })
  return {
    ...about,
    outcome: { kind: 'outcome_unknown', errorCode: 'executor_died', errorJson },
    final: true,
  }
}

function stillUnknown(grant: StoredGrant): OutgoingReport {
  const attempt = grant.attempt === undefined ? {} : { attempt: grant.attempt }
  const outcome: Outcome = { kind: 'outcome_unknown', errorCode: 'still_unknown' }
  return { grant: grant.grant, delivery: grant.delivery, ...attempt, outcome, final: true }
}
