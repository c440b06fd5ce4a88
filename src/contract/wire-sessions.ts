import { z } from 'zod'
import { components } from './components.js'
import { sessionViewSchema } from './session-views.js'
import { closeReasons, isScope, terminalOf } from './sessions.js'
import { count } from './view-parts.js'
import { cursor, epoch, host, id, text } from './wire-parts.js'

// Bodies, queries and answers of the routes on sessions, and of an operator's word on a delivery in doubt.

const scope = z
  .string()
  .refine(isScope, 'must be a canonical absolute path: no trailing slash, no empty, . or .. parts')
  .describe('its directory: a canonical absolute path, compared as a string')

export const sessionParams = z.object({ id })
export const sessionsReply = z.object({ sessions: z.array(sessionViewSchema), cursor: cursor.optional() })

export const sessionOpenBody = z
  .strictObject({
    host: host.describe('the host that owns it'),
    scope,
    restartBudget: z
      .int()
      .min(0)
      .max(1_000_000)
      .optional()
      .describe('crashes after which one is terminal; as it was when absent, 0 at first'),
    parent: id.optional().describe('the session it is a child of; stated at its first opening'),
    asOperator: z
      .boolean()
      .optional()
      .describe(
        'opens one that was reported missing, and starts the count of crashes over where it was closed for good: true by operators alone; as the role says when absent',
      ),
  })
  .register(components, { id: 'OpenSession' })

export const sessionCloseBody = z
  .strictObject({
    epoch: epoch.describe('what opening answered: the close of an earlier owner is refused'),
    reason: z.enum(closeReasons),
    drained: z.boolean().describe('nothing was under way any more'),
    abandoned: count.describe('what was under way and was given up'),
    terminal: z
      .boolean()
      .optional()
      .describe(
        'it will not come back without an operator: true for disable and removed, false for reload and restart, left out for a crash',
      ),
  })
  .refine(({ reason, terminal }) => terminal === terminalOf(reason), {
    path: ['terminal'],
    error: 'must be true for disable and removed, false for reload and restart, and left out for a crash',
  })
  .register(components, { id: 'CloseSession' })

export const sessionRehomeBody = z
  .strictObject({ host: host.describe('where it lives from now on'), reason: text })
  .register(components, { id: 'RehomeSession' })

export const deliveryResolveBody = z
  .strictObject({
    as: z.enum(['queued', 'failed']).describe('queued: hand it out again; failed: it will not run'),
    evidence: text.describe('how it is known; kept with who said it'),
  })
  .register(components, { id: 'ResolveDelivery' })
