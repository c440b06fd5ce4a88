import { z } from 'zod'
import { components } from './components.js'
import { roles } from './principals.js'
import { timeMs, type View } from './view-parts.js'

// What readers of the record are shown of principals, in the SDK and over HTTP alike.

/** A principal; never its secrets. */
export const principalViewSchema = z
  .object({
    name: z.string(),
    role: z.enum(roles),
    host: z.string().optional(),
    scopes: z.array(z.string()),
    anySender: z.boolean(),
    credential: z.enum(['token', 'certificate', 'both']),
    certificateSha256: z.string().optional(),
    createdAt: timeMs,
    createdBy: z.string(),
    missing: z
      .array(z.string())
      .optional()
      .describe('in a set of hubs: those that do not let it in, where others do'),
    revokedAt: timeMs.optional(),
    revokedBy: z.string().optional(),
    revokedReason: z.string().optional(),
  })
  .register(components, { id: 'Principal' })
/** A principal as recorded: never its secret. @interface */
export type PrincipalView = View<typeof principalViewSchema>
