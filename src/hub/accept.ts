import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../contract/backoff.js'
import { type Batcher, createBatcher } from '../contract/batcher.js'
import type { AcceptedDelivery, DeliveryView } from '../contract/delivery-views.js'
import { HoldfastError, isHoldfastError } from '../contract/errors.js'
import type { Accepted } from '../contract/hub.js'
import { messageId } from '../contract/ids.js'
import {
  type MessageInput,
  type PreparedMessage,
  prepareMessage,
  type Recipient,
} from '../contract/message.js'
import { aroundCall, type OnPoint } from '../contract/points.js'
import type { FanOutReply, Functions } from '../record/functions.js'
import type { HubParts } from './parts.js'
import { readMessage } from './views.js'

/** What accepting needs beside the parts of its hub. */
export interface AcceptParts extends HubParts {
  readonly accepting: Accepting
}

/** Messages that are accepted at the same time share calls. */
export type Accepting = Batcher<Incoming, FanOutReply | Error>

interface Incoming {
  readonly message: PreparedMessage
  readonly onSent: (() => void) | undefined
}

const fanOutChunk = 64
/** Of one call that accepts: it is to hold the server for a few milliseconds at most. */
const batches = { most: 64, atOnce: 2, weight: { most: 256, of: weightOf } }
const bytesAsHeavyAsOne = 4096
const retry = { leastMs: 20, mostMs: 1000 }

/**
 * Nobody waits for company: what comes while calls are under way goes into the next one together. `onAccepted` is told of
 * the messages that are answered for, with the entries of the log that recorded them.
 */
export function createAccepting(
  functions: Functions,
  onAccepted: (logId: string, messageId: string) => void,
): Accepting {
  return createBatcher({
    ...batches,
    send: async (incoming: readonly Incoming[]) => {
      const answers = await acceptTogether(functions, incoming)
      for (const answer of answers) if (!(answer instanceof Error)) onAccepted(answer.logId, answer.id)
      return answers
    },
  })
}

async function acceptTogether(
  functions: Functions,
  incoming: readonly Incoming[],
): Promise<readonly (FanOutReply | Error)[]> {
  const onSent = () => {
    for (const each of incoming) each.onSent?.()
  }
  const [only, ...others] = incoming
  if (only !== undefined && others.length === 0) return [await functions.accept(only.message, { onSent })]
  return await functions.acceptBatch(
    incoming.map(({ message }) => message),
    { onSent },
  )
}

/** Roughly the deliveries that accepting it makes at once; bytes count too. */
function weightOf({ message }: Incoming): number {
  return 1 + message.recipients.length + message.payload.length / bytesAsHeavyAsOne
}

async function accept(
  parts: AcceptParts,
  message: PreparedMessage,
  onSent?: () => void,
): Promise<FanOutReply> {
  const answer = await parts.accepting.submit({ message, onSent })
  if (answer instanceof Error) throw answer
  return answer
}

/** Accepts, makes what accept left owed, and answers the deliveries as they stand. */
export async function acceptMessage(parts: AcceptParts, input: MessageInput): Promise<Accepted> {
  const { functions, reader, keys, deadlineMs, onPoint } = parts
  const message = prepareMessage(input)
  const reply = await untilAnswered(deadlineMs, () =>
    aroundCall('accept', onPoint, ({ onSent }) => accept(parts, message, onSent)),
  )
  const made = await completeFanOut(functions, reply, onPoint)
  // Another hub may have made some of them: then the record alone knows them all.
  if (!reply.replayed && made.deliveries.length === made.made) {
    return { id: reply.id, deliveries: made.deliveries, fanOut: made.fanOut, replayed: false }
  }
  const view = await untilAnswered(deadlineMs, () => readMessage(reader, keys, reply.id))
  return {
    id: reply.id,
    deliveries: view.deliveries.map(briefOf),
    fanOut: view.fanOut,
    replayed: reply.replayed,
  }
}

/**
 * Sends a message again, to the recipients of its first time or to others, under a new key.
 * @throws MESSAGE_NOT_FOUND, and what accept throws
 */
export async function resendMessage(
  parts: AcceptParts,
  id: string,
  options: { readonly key: string; readonly to?: readonly Recipient[] | undefined },
): Promise<Accepted> {
  const { store, reader, keys, functions, onPoint } = parts
  // Where its fan-out was cut, the rest of its recipients is known to the record alone.
  for (let whole = false; !whole; ) {
    const reply = await fanOut(functions, messageId(id), onPoint)
    whole = reply.made >= reply.recipients
  }
  const first = await readMessage(reader, keys, id)
  const payload = await store.call(['GET', keys.payload(id)], { buffers: true })
  if (!Buffer.isBuffer(payload)) {
    throw new HoldfastError('MESSAGE_NOT_FOUND', `the payload of ${id} is not in the record any more`)
  }
  return acceptMessage(parts, {
    key: options.key,
    conversation: first.conversation,
    sender: first.sender,
    to: [...(options.to ?? first.deliveries.map(recipientOf))],
    payload,
    resendOf: id,
    ...(first.contentType === undefined ? {} : { contentType: first.contentType }),
    ...(first.parent === undefined ? {} : { parent: first.parent }),
  })
}

function recipientOf(delivery: DeliveryView): Recipient {
  return delivery.session === undefined ? { host: delivery.host } : { session: delivery.session }
}

/** Repeats a call that is safe to repeat until it is answered or the deadline has passed. */
async function untilAnswered<Reply>(deadlineMs: number, call: () => Promise<Reply>): Promise<Reply> {
  const deadlineAt = performance.now() + deadlineMs
  for (let failures = 1; ; failures += 1) {
    try {
      return await call()
    } catch (error) {
      const waitMs = backoffMs(retry, failures)
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE', 'DEADLINE_EXCEEDED', 'NOT_REPLICATED')) throw error
      if (performance.now() + waitMs > deadlineAt) throw error
      await sleep(waitMs)
    }
  }
}

/** Makes what is still owed. Where that fails the obligation stands, and the answer says `pending`. */
async function completeFanOut(
  functions: Functions,
  reply: FanOutReply,
  onPoint: OnPoint | undefined,
): Promise<{ deliveries: FanOutReply['deliveries']; made: number; fanOut: 'complete' | 'pending' }> {
  const deliveries = [...reply.deliveries]
  let { made } = reply
  while (made < reply.recipients) {
    try {
      const chunk = await fanOut(functions, reply.id, onPoint)
      deliveries.push(...chunk.deliveries)
      made = chunk.made
    } catch (error) {
      if (isHoldfastError(error)) return { deliveries, made, fanOut: 'pending' }
      throw error
    }
  }
  return { deliveries, made, fanOut: 'complete' }
}

/** Makes the next chunk of what a message owes. */
export function fanOut(functions: Functions, id: string, onPoint: OnPoint | undefined): Promise<FanOutReply> {
  return aroundCall('fan_out', onPoint, (sending) => functions.fanOut(id, fanOutChunk, sending))
}

function briefOf(view: DeliveryView): AcceptedDelivery {
  const { id, host, session, state } = view
  return session === undefined ? { id, host, state } : { id, host, session, state }
}
