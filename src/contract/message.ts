import { createHash } from 'node:crypto'
import { z } from 'zod'
import { HoldfastError } from './errors.js'
import { check, faultLine, kindOf, timeError } from './faults.js'
import { idForm, isHostId, isId, nameForm } from './ids.js'

const id = z.string().refine(isId, idForm)
const host = z.string().refine(isHostId, nameForm)

/** A recipient: a host, or a session, which is routed to the host that owns it. */
export type Recipient = { host: string } | { session: string }
export const recipientSchema = z.union([
  z.strictObject({ host }),
  z.strictObject({ session: id }),
]) satisfies z.ZodType<Recipient>

/** RFC 3339 with an offset, a Date, or Unix milliseconds. */
const error = timeError('RFC 3339 with an offset, Unix milliseconds or a Date')
const timeSchema = z
  .union([z.int({ error }), z.date({ error }), z.iso.datetime({ offset: true, error })], { error })
  .transform((value) => (typeof value === 'number' ? value : new Date(value).getTime()))
  .refine((value) => Number.isSafeInteger(value) && value >= 0, 'must be a time from 1970 on')

/** What `accept` takes. The payload is opaque: it reaches the executor byte for byte. */
export const messageSchema = z.strictObject({
  /** Hub-scoped idempotency key. */
  key: id,
  conversation: id,
  sender: id,
  /** One named twice is named once. An empty list is accepted: a message without deliveries, settled at once. */
  to: z.array(recipientSchema),
  payload: z.union([z.custom<Uint8Array>((value) => value instanceof Uint8Array), z.string()], {
    error: ({ input }) =>
      input === undefined
        ? 'is required'
        : `must be a string or bytes (Buffer, Uint8Array), not ${kindOf(input)}: JSON.stringify it`,
  }),
  contentType: id.optional(),
  parent: id.optional(),
  /** The message that this one sends again, under a new key. */
  resendOf: id.optional(),
  /** Until when it must be claimed, by the clock of Redis. */
  deliverBy: timeSchema.optional(),
  /** Until when it must be begun, by the clock of Redis. */
  executeBy: timeSchema.optional(),
})
/** What `accept` takes. The payload is opaque: it reaches the executor byte for byte. @interface */
export type MessageInput = z.input<typeof messageSchema>
/** A message as it is handed to a hub over HTTP, where the principal is the sender unless it names another. */
export type OutgoingMessage = Omit<MessageInput, 'sender'> & { readonly sender?: string | undefined }

/** A checked message, ready for the record. */
export interface PreparedMessage {
  readonly key: string
  readonly conversation: string
  readonly sender: string
  readonly recipients: readonly string[]
  readonly payload: Buffer
  readonly contentType: string
  readonly parent: string
  readonly resendOf: string
  readonly deliverBy: string
  readonly executeBy: string
  readonly sha256: string
  readonly fingerprint: string
}

/**
 * Checks a message, takes its digest and its fingerprint.
 * @throws HoldfastError INVALID_ARGUMENT, naming every bad member
 */
export function prepareMessage(input: MessageInput): PreparedMessage {
  const checked = check(messageSchema, input)
  if (!checked.ok) throw new HoldfastError('INVALID_ARGUMENT', faultLine(checked.faults, 'message'))
  const message = checked.value
  const payload = payloadBytes(message.payload)
  const recipients = [...new Set(message.to.map(recipientText))]
  const sha256 = createHash('sha256').update(payload).digest('hex')
  const parent = message.parent ?? ''
  return {
    key: message.key,
    conversation: message.conversation,
    sender: message.sender,
    recipients,
    payload,
    contentType: message.contentType ?? '',
    parent,
    resendOf: message.resendOf ?? '',
    deliverBy: message.deliverBy?.toString() ?? '',
    executeBy: message.executeBy?.toString() ?? '',
    sha256,
    fingerprint: fingerprint({
      conversation: message.conversation,
      sender: message.sender,
      parent,
      recipients,
      sha256,
    }),
  }
}

/** `host:<h>` or `session:<s>`, as the functions take it. */
function recipientText(recipient: Recipient): string {
  return 'host' in recipient ? `host:${recipient.host}` : `session:${recipient.session}`
}

/**
 * What makes two messages under one key the same (contract section 7): conversation, sender, recipient set,
 * parent and payload bytes; not the deadlines, not the order of recipients.
 */
function fingerprint(parts: {
  conversation: string
  sender: string
  parent: string
  recipients: readonly string[]
  sha256: string
}): string {
  const text = JSON.stringify([
    parts.conversation,
    parts.sender,
    parts.parent,
    [...parts.recipients].sort(),
    parts.sha256,
  ])
  // Kept once a message: the shorter text.
  return createHash('sha256').update(text).digest('base64url')
}

/** UTF-8 for text, refusing what has no UTF-8 form; bytes as they are. */
function payloadBytes(payload: string | Uint8Array): Buffer {
  if (typeof payload !== 'string') return Buffer.from(payload)
  if (!payload.isWellFormed()) {
    throw new HoldfastError(
      'INVALID_ARGUMENT',
      'payload holds a lone surrogate, which has no UTF-8 form; pass bytes',
    )
  }
  return Buffer.from(payload, 'utf8')
}
