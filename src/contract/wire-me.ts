import { z } from 'zod'
import { components } from './components.js'
import { roles } from './principals.js'
import type { View } from './view-parts.js'

// Who speaks, and how a browser says so.

export const meReply = z
  .object({
    name: z.string().describe('of the principal; without one, of whoever is taken for the operator'),
    role: z.enum(roles),
    host: z.string().optional().describe('of a node: the one host that it serves'),
    anonymous: z.boolean().describe('nobody had to say who they are: no principal exists yet'),
    hub: z.string().describe('name of the hub'),
    version: z.string().describe('of this package'),
    payloads: z.boolean().describe('whether this caller may read payloads'),
  })
  .register(components, { id: 'Me' })
export type Me = View<typeof meReply>

export const loginBody = z
  .strictObject({
    token: z
      .string()
      .regex(/^[\x21-\x7e]{1,512}$/, 'must be 1 to 512 characters of a token')
      .describe('of a principal, as it was shown once'),
  })
  .register(components, { id: 'Login' })
