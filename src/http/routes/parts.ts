import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import type { OnPoint } from '../../contract/points.js'
import { problemSchema } from '../../contract/wire.js'
import type { LogTail } from '../../hub/log-tail.js'
import type { Hub } from '../../hub/open-hub.js'
import type { Functions } from '../../record/functions.js'
import type { Keys } from '../../record/keys.js'
import type { Reader } from '../../record/reader.js'
import type { Identities } from '../identities.js'

/** The server as routes see it: checked and typed by the schemas of `contract/wire.ts`. */
export type App = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  ZodTypeProvider
>

/** What the routes work with. */
export interface RouteParts {
  readonly hub: Hub
  readonly functions: Functions
  /** On a connection of their own, so that no large answer delays them. */
  readonly beats: Functions
  readonly reader: Reader
  readonly keys: Keys
  readonly tail: LogTail
  readonly identities: Identities
  /** Aborted when the server shuts down. */
  readonly closing: AbortSignal
  readonly onPoint: OnPoint | undefined
}

/** Answers of a route: its own, and problems for everything else. */
export function replies<Good extends Record<number, z.ZodType>>(good: Good) {
  const problems = z
    .object(problemSchema.shape)
    .describe('a problem; `code` says which')
    .meta({ id: 'AnyProblem' })
  return { ...good, '4xx': problems, '5xx': problems }
}
