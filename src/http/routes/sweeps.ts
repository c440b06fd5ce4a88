import { z } from 'zod'
import { isSweepName, sweepNames } from '../../contract/sweeps.js'
import { auditSchema } from '../../contract/upkeep-views.js'
import { sweepParams, sweepRunsReply, sweepsReply } from '../../contract/wire.js'
import { access } from '../access.js'
import { type App, type RouteParts, replies } from './parts.js'

/** Sweeps: what puts a hub right without being asked, and the audit. */
export function addSweepRoutes(app: App, { hub, sweeper }: RouteParts): void {
  app.get(
    '/v1/sweeps',
    {
      config: { access: access.readers },
      schema: {
        operationId: 'listSweeps',
        summary: 'Every sweep and how its last run went',
        tags: ['sweeps'],
        response: replies({ 200: sweepsReply }),
      },
    },
    async () => ({ sweeps: await hub.sweeps() }),
  )
  app.post(
    '/v1/sweeps/:name/run',
    {
      config: { access: access.operators, waits: true },
      schema: {
        operationId: 'runSweep',
        summary:
          'Run one sweep now, or `all` of them, one after the other; harmless beside the scheduled ones',
        tags: ['sweeps'],
        params: sweepParams,
        // Which one is in the path: there is nothing to add.
        body: z.strictObject({}).nullish(),
        response: replies({ 200: sweepRunsReply }),
      },
    },
    async (request) => {
      const { name } = request.params
      const runs = []
      for (const each of isSweepName(name) ? [name] : sweepNames) runs.push(await sweeper.run(each))
      return { runs }
    },
  )
  app.get(
    '/v1/audit',
    {
      config: { access: access.readers, waits: true },
      schema: {
        operationId: 'getAudit',
        summary: 'Conservation, and every disagreement between rows, indexes and counts; changes nothing',
        tags: ['sweeps'],
        response: replies({ 200: auditSchema }),
      },
    },
    async () => await hub.audit(),
  )
}
