import { z } from 'zod'
import { timeError } from './faults.js'
import {
  idForm,
  idPattern,
  isDeliveryId,
  isHostId,
  isId,
  isMessageId,
  nameForm,
  namePattern,
  parseAttemptId,
} from './ids.js'
import { count } from './view-parts.js'

// What the bodies, queries and answers of the HTTP surface are made of.

export const id = z
  .string()
  .refine(isId, idForm)
  .meta({ pattern: idPattern.source, minLength: 1, maxLength: 255 })
export const host = z.string().refine(isHostId, nameForm).meta({ pattern: namePattern.source })
export const deliveryId = z.string().refine(isDeliveryId, 'must be a delivery id: <message>.<n>')
export const messageId = z.string().refine(isMessageId, 'must be a message id: <ms>-<sequence>')
export const attemptId = z
  .string()
  .refine((text) => parseAttemptId(text) !== undefined, 'must be an attempt id: <message>.<n>/<n>')
export const text = z.string().refine((given) => {
  const bytes = Buffer.byteLength(given)
  return bytes >= 1 && bytes <= 1024 && given.isWellFormed()
}, 'must be 1 to 1024 bytes of text')
/** The id of an entry of the log, as an answer gave it; empty for nothing. */
export const logId = z.string().regex(/^(\d{1,20}-\d{1,20})?$/, 'must be the id of a log entry: <ms>-<n>')
export const epoch = count
const error = timeError('RFC 3339 with an offset, or Unix milliseconds')
export const time = z
  .union([z.int({ error }).nonnegative({ error }), z.iso.datetime({ offset: true, error })], { error })
  .describe('RFC 3339 with an offset, or Unix ms')
  .transform((given) => (typeof given === 'number' ? given : new Date(given).getTime()))
  .refine((ms) => Number.isSafeInteger(ms) && ms >= 0, 'must be a time from 1970 on')
export const anyJson = z.unknown().describe('any JSON value; kept as its exact source text')

/** A whole number in a query string. */
export function numeric(least: number, most: number) {
  return z
    .string()
    .regex(/^\d{1,15}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.int().min(least).max(most))
}

/** The most milliseconds that a call waits for something. */
export const longestWaitMs = 60_000
/** The most items of one step. */
export const mostItems = 1000

export const cursor = z.string().max(1000).describe('from the answer before; absent at the end')
export const pageMembers = {
  cursor: cursor.optional(),
  limit: numeric(1, 1000).optional().describe('100 when absent'),
}

export const wireOutcome = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('result'), result: anyJson.optional() }),
  z.strictObject({ kind: z.literal('terminal'), errorCode: id, errorJson: anyJson.optional() }),
  z.strictObject({ kind: z.literal('not_sent'), errorCode: id, errorJson: anyJson.optional() }),
  z.strictObject({ kind: z.literal('outcome_unknown'), errorCode: id, errorJson: anyJson.optional() }),
])
