import { z } from 'zod'
import { components } from './components.js'
import { sessionStates } from './sessions.js'
import { count, timeMs, type View } from './view-parts.js'

// What readers of the record are shown of sessions, in the SDK and over HTTP alike.

/** A session after a call on it. */
export const sessionReplySchema = z
  .object({
    session: z.string(),
    host: z.string().describe('the host that owns it'),
    scope: z.string(),
    epoch: count.describe('presented by a close'),
    state: z.enum(sessionStates),
    terminal: z.boolean().optional().describe('closed: it will not come back without an operator'),
    reason: z.string().optional().describe('why it was closed'),
    crashes: count.describe('crashes that the restart budget has paid for'),
    restartBudget: count,
    logId: z.string(),
  })
  .register(components, { id: 'SessionAnswer' })
/** A session after a call on it. @interface */
export type SessionReply = View<typeof sessionReplySchema>

/** A session as recorded. */
export const sessionViewSchema = z
  .object({
    session: z.string(),
    host: z.string(),
    scope: z.string(),
    epoch: count,
    state: z.enum(sessionStates),
    terminal: z.boolean().optional(),
    reason: z.string().optional(),
    drained: z.boolean().optional(),
    abandoned: count.optional(),
    parent: z.string().optional(),
    crashes: count,
    restartBudget: count,
    openedAt: timeMs.optional(),
    openedBy: z.string().optional(),
    closedAt: timeMs.optional(),
    closedBy: z.string().optional(),
    missingAt: timeMs.optional(),
    missingAttempt: z.string().optional().describe('the attempt that reported it'),
    rehomedAt: timeMs.optional(),
    rehomedFrom: z.string().optional(),
    movingFrom: z.string().optional().describe('its deliveries are still on their way from this host'),
    unfinished: count.describe('deliveries that are not settled'),
  })
  .register(components, { id: 'Session' })
/** A session as recorded. @interface */
export type SessionView = View<typeof sessionViewSchema>
