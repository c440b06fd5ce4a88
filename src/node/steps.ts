import { createBatcher } from '../contract/batcher.js'
import { isHoldfastError } from '../contract/errors.js'
import { aroundCall, type OnPoint } from '../contract/points.js'
import type {
  BeginItem,
  ClaimReply,
  NodeIdentity,
  RefuseItem,
  ReportItem,
  StepResult,
  TakeItem,
  TakeReply,
} from '../contract/steps.js'
import type { ClaimWait } from './claim-loop.js'
import type { Persistence } from './persistence.js'
import type { NodeTransport } from './transport.js'

/** The steps of this process, each repeated until it is answered. */
export interface Steps {
  claim(request: number, count: number, waiting: ClaimWait): Promise<ClaimReply>
  take(items: readonly TakeItem[]): Promise<TakeReply>
  refuse(items: readonly RefuseItem[]): Promise<readonly StepResult[]>
  /** Gathered into batches with whatever else begins or reports meanwhile. */
  begin(item: BeginItem): Promise<StepResult>
  /** One that the record refuses as badly formed is answered with `INVALID_ARGUMENT`, and its neighbours as ever. */
  report(item: ReportItem): Promise<StepResult>
}

const batchAtMost = 100

export function stepsOf(
  who: NodeIdentity,
  transport: NodeTransport,
  persistence: Persistence,
  onPoint: OnPoint | undefined,
  onLogId: (logId: string) => void,
): Steps {
  const begins = createBatcher({
    most: batchAtMost,
    send: (items: readonly BeginItem[]) =>
      persistence.call('begin', () =>
        aroundCall('begin', onPoint, (sending) => transport.begin(who, items, { ...sending, onLogId })),
      ),
  })
  const sendReports = (items: readonly ReportItem[]) =>
    persistence.call('report', () =>
      aroundCall('report', onPoint, (sending) => transport.report(who, items, { ...sending, onLogId })),
    )
  const reports = createBatcher({
    most: batchAtMost,
    send: (items: readonly ReportItem[]) => eachAnswered(items, sendReports),
  })
  return {
    claim: (request, count, waiting) =>
      persistence.call('claim', () =>
        aroundCall('claim', onPoint, (sending) =>
          transport.claim(who, request, count, { ...sending, ...waiting }),
        ),
      ),
    take: (items) =>
      persistence.call('take', () =>
        aroundCall('take', onPoint, (sending) => transport.take(who, items, { ...sending, onLogId })),
      ),
    refuse: (items) => persistence.call('refuse', () => transport.refuse(who, items)),
    begin: begins.submit,
    report: reports.submit,
  }
}

/** A badly formed report has its batch refused as a whole: each is sent alone then, and the one it is has the refusal. */
async function eachAnswered(
  items: readonly ReportItem[],
  send: (items: readonly ReportItem[]) => Promise<readonly StepResult[]>,
): Promise<readonly StepResult[]> {
  try {
    return await send(items)
  } catch (error) {
    if (!isHoldfastError(error, 'INVALID_ARGUMENT')) throw error
    const [only, ...others] = items
    if (only === undefined) throw error
    if (others.length === 0) return [{ id: only.id, ok: false, code: error.code, detail: error.message }]
    const answers: StepResult[] = []
    for (const item of items) answers.push(...(await eachAnswered([item], send)))
    return answers
  }
}
