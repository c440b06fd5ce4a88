import type { z } from 'zod'
import type { JsonSource } from '../../contract/json-source.js'
import type { Outcome } from '../../contract/outcomes.js'
import type { ReportItem } from '../../contract/steps.js'
import { reportBody, stepReply } from '../../contract/wire-nodes.js'
import { access, requireHost } from '../access.js'
import type { Limits } from '../limits.js'
import { type App, type RouteParts, replies } from './parts.js'
import { answeredBy } from './results.js'

export interface ReportParts extends RouteParts {
  readonly limits: Limits
}

/** Reports: how attempts went. */
export function addReportRoute(app: App, { functions, limits }: ReportParts): void {
  app.post(
    '/delivery-report',
    {
      bodyLimit: limits.bodyBytes,
      config: { access: access.nodes },
      schema: {
        operationId: 'report',
        summary: 'How attempts went; accepted from any process of the node whose grant it was',
        tags: ['nodes'],
        body: reportBody,
        response: replies({ 200: stepReply }),
      },
    },
    async (request) => {
      const { host, node, incarnation, reports } = request.body
      requireHost(request.caller, host)
      const items = reports.map((report, at) => itemOf(report, at, request.source))
      return await answeredBy((options) => functions.report({ host, node, incarnation }, items, options))
    },
  )
}

type WireReport = z.output<typeof reportBody>['reports'][number]

function itemOf(report: WireReport, at: number, source: JsonSource | undefined): ReportItem {
  const { attempt, delivery, grant, key, outcome, ended } = report
  const exact = (member: string) => source?.textAt(['reports', at, 'outcome', member])?.toString('utf8')
  return { id: attempt ?? delivery ?? '', grant, key, outcome: outcomeOf(outcome, exact), ended }
}

/** The outcome with its JSON as it was sent. */
export function outcomeOf(
  outcome: WireReport['outcome'],
  exact: (member: string) => string | undefined,
): Outcome {
  if (outcome.kind === 'result') return { kind: 'result', result: exact('result') ?? 'null' }
  const errorJson = exact('errorJson')
  const { kind, errorCode } = outcome
  return { kind, errorCode, ...(errorJson === undefined ? {} : { errorJson }) }
}
