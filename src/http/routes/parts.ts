import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyTypeProvider,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import type { z } from 'zod'
import type { OnPoint } from '../../contract/points.js'
import type { View } from '../../contract/view-parts.js'
import { problemSchema } from '../../contract/wire.js'
import type { LogTail } from '../../hub/log-tail.js'
import type { Hub } from '../../hub/open-hub.js'
import type { Functions } from '../../record/functions.js'
import type { Keys } from '../../record/keys.js'
import type { Reader } from '../../record/reader.js'
import type { Identities } from '../identities.js'
import type { Sweeper } from '../sweeper.js'

/** What routes are given, and what they may answer: of an answer nothing is changed, so it may be read-only. */
interface WireTypes extends FastifyTypeProvider {
  readonly validator: this['schema'] extends z.ZodType ? z.output<this['schema']> : unknown
  readonly serializer: this['schema'] extends z.ZodType ? View<this['schema']> : unknown
}

/** The server as routes see it: checked and typed by the schemas of `contract/wire*.ts`. */
export type App = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  WireTypes
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
  readonly sweeper: Sweeper
  /** Aborted when the server shuts down. */
  readonly closing: AbortSignal
  readonly onPoint: OnPoint | undefined
}

/** An answer as text of another kind than JSON; what a route does not describe is not checked. */
export interface TextReply<Type extends string, Schema extends z.ZodType> {
  readonly description: string
  readonly content: { readonly [Each in Type]: { readonly schema: Schema } }
}

const problems = { 'application/problem+json': { schema: problemSchema } }

/** Answers of a route: its own, and problems for everything else. */
export function replies<Good extends Record<number, z.ZodType | TextReply<string, z.ZodType>>>(good: Good) {
  return {
    ...good,
    '4xx': { description: 'Refused: `code` says why, `next` what to do about it', content: problems },
    '5xx': { description: 'Failed, or nobody knows whether it was done: see `code`', content: problems },
  }
}
