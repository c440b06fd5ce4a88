import { historySchema, overviewSchema } from '../../contract/overview.js'
import { logFilterOf, logQuery, logReply } from '../../contract/wire-log.js'
import { access } from '../access.js'
import type { Sampling } from '../history.js'
import { type App, type RouteParts, replies } from './parts.js'

export interface OverviewParts extends RouteParts {
  readonly sampling: Sampling
}

/** What shows the hub at a glance, what its counts were lately, and its log by pages. */
export function addOverviewRoutes(app: App, { hub, sampling }: OverviewParts): void {
  app.get(
    '/v1/overview',
    {
      config: { access: access.readers },
      schema: {
        operationId: 'getOverview',
        summary: 'What shows the hub at a glance; read from the record at most every two seconds',
        tags: ['hosts'],
        response: replies({ 200: overviewSchema }),
      },
    },
    async () => await hub.overview(),
  )
  app.get(
    '/v1/history',
    {
      config: { access: access.readers },
      schema: {
        operationId: 'getHistory',
        summary: 'What the counts were in the last hour, as this process saw them',
        tags: ['hosts'],
        response: replies({ 200: historySchema }),
      },
    },
    async () => sampling.history(),
  )
  app.get(
    '/v1/log',
    {
      config: { access: access.readers },
      schema: {
        operationId: 'listLog',
        summary: 'The log, the newest entry first, as far as it reaches back',
        description:
          'A page looks at 2000 entries at most: where few match, it may be empty and have a cursor all the same.',
        tags: ['events'],
        querystring: logQuery,
        response: replies({ 200: logReply }),
      },
    },
    async (request) => {
      const { cursor, limit, ...query } = request.query
      return await hub.logPage({ ...logFilterOf(query), cursor, limit })
    },
  )
}
