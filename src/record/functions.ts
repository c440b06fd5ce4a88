import type { OperatorReply, WhyReply } from '../contract/delivery-views.js'
import type { FenceReply, LiftReply } from '../contract/host-views.js'
import type { PreparedMessage } from '../contract/message.js'
import type { Sending } from '../contract/points.js'
import type { Role } from '../contract/principals.js'
import type { DeliveryState } from '../contract/states.js'
import { callFunctionOf } from './call-function.js'
import type { Argument, Store } from './connections.js'
import { type EffectFunctions, effectFunctionsOf } from './effect-functions.js'
import { failureOfReply } from './failures.js'
import { type NodeFunctions, nodeFunctionsOf } from './node-functions.js'
import { type Fields, fieldsOf, listOf, number, optionalText, present, stateOf, text } from './replies.js'
import { type SessionFunctions, sessionFunctionsOf } from './session-functions.js'
import { type SweepFunctions, sweepFunctionsOf } from './sweep-functions.js'

/** A delivery as accept and fan-out answer it. */
export interface MadeDelivery {
  readonly id: string
  readonly host: string
  readonly session?: string
  readonly state: DeliveryState
}

/** The answer to accept and fan_out: `made` below `recipients` means that an obligation stands. */
export interface FanOutReply {
  readonly id: string
  readonly replayed: boolean
  readonly recipients: number
  readonly made: number
  readonly logId: string
  /** Those made by this call; none for a replay. */
  readonly deliveries: readonly MadeDelivery[]
}

export interface RetireReply {
  readonly host: string
  /** A slice was moved and there is more: call again. */
  readonly more: boolean
  readonly logId: string
}

/** The identity of a record. */
export interface InitReply {
  readonly storeId: string
  readonly generation: number
  /** False when the record was there already. */
  readonly made: boolean
}

/**
 * Typed callers of the function library, one a verb: arguments and replies are stated in the header of
 * `lua/functions/<verb>.lua`. All of them throw HoldfastError with the codes named there, and
 * STORE_UNAVAILABLE or DEADLINE_EXCEEDED as {@link Store} does; every one is safe to repeat.
 */
export interface Functions extends NodeFunctions, EffectFunctions, SessionFunctions, SweepFunctions {
  init(storeId: string, afterLoss: boolean): Promise<InitReply>
  accept(message: PreparedMessage, sending?: Sending): Promise<FanOutReply>
  /** Up to 100 messages in one call, each accepted, or refused with its own error, for itself. */
  acceptBatch(
    messages: readonly PreparedMessage[],
    sending?: Sending,
  ): Promise<readonly (FanOutReply | Error)[]>
  fanOut(messageId: string, chunk: number, sending?: Sending): Promise<FanOutReply>
  pause(scope: string, reason: string, actor: string, untilMs?: number): Promise<FenceReply>
  block(scope: string, reason: string, actor: string, untilMs?: number): Promise<FenceReply>
  hold(scope: string, reason: string, actor: string, untilMs?: number): Promise<FenceReply>
  lift(kind: string, scope: string, actor: string): Promise<LiftReply>
  release(deliveryId: string, actor: string, reason: string): Promise<OperatorReply>
  reject(deliveryId: string, actor: string, reason: string): Promise<OperatorReply>
  holdDelivery(deliveryId: string, actor: string, reason: string): Promise<OperatorReply>
  cancel(deliveryId: string, actor: string, reason: string): Promise<OperatorReply>
  retire(host: string, actor: string, reason: string): Promise<RetireReply>
  why(deliveryId: string): Promise<WhyReply>
  addPrincipal(principal: NewPrincipal, actor: string): Promise<{ createdAt: number; logId: string }>
  revokePrincipal(
    name: string,
    actor: string,
    reason: string,
  ): Promise<{ name: string; revokedAt: number; logId: string }>
  /** Changes all of the settings or, where one is bad, none. */
  configure(changes: Readonly<Record<string, string>>, actor: string): Promise<{ logId: string }>
}

/** A principal as it is added: digests, never secrets. */
export interface NewPrincipal {
  readonly name: string
  readonly role: Role
  readonly host?: string | undefined
  readonly scopes?: readonly string[] | undefined
  readonly anySender?: boolean | undefined
  /** SHA-256 in lower-case hex. */
  readonly tokenSha256?: string | undefined
  readonly certificateSha256?: string | undefined
}

/** The callers for one hub on one connection. */
export function functionsOf(store: Store, tag: string): Functions {
  const call = callFunctionOf(store, tag)
  async function setFence(kind: string, scope: string, reason: string, actor: string, untilMs?: number) {
    const reply = await call(kind, [scope, reason, actor, untilMs ?? ''])
    return {
      fence: text(reply, 'fence'),
      logId: text(reply, 'log_id'),
      ...present('replaced', optionalText(reply, 'replaced')),
    }
  }

  async function act(
    verb: string,
    deliveryId: string,
    actor: string,
    reason: string,
  ): Promise<OperatorReply> {
    const reply = await call(verb, [deliveryId, actor, reason])
    return {
      id: text(reply, 'id'),
      state: stateOf(text(reply, 'state')),
      epoch: number(reply, 'epoch'),
      logId: text(reply, 'log_id'),
    }
  }

  return {
    ...nodeFunctionsOf(call),
    ...effectFunctionsOf(call),
    ...sessionFunctionsOf(call),
    ...sweepFunctionsOf(call),
    init: async (storeId, afterLoss) => {
      const reply = await call('init', [storeId, afterLoss ? 1 : 0])
      return {
        storeId: text(reply, 'store_id'),
        generation: number(reply, 'generation'),
        made: number(reply, 'made') === 1,
      }
    },
    accept: async (message, sending) =>
      fanOutReplyOf(await call('accept', acceptArguments(message), sending)),
    acceptBatch: async (messages, sending) => {
      const args = messages.flatMap((message) => [message.recipients.length, ...acceptArguments(message)])
      return listOf(await call('accept_batch', args, sending), 'results').map(acceptedOrNot)
    },
    fanOut: async (messageId, chunk, sending) =>
      fanOutReplyOf(await call('fan_out', [messageId, chunk], sending)),
    pause: (scope, reason, actor, untilMs) => setFence('pause', scope, reason, actor, untilMs),
    block: (scope, reason, actor, untilMs) => setFence('block', scope, reason, actor, untilMs),
    hold: (scope, reason, actor, untilMs) => setFence('hold', scope, reason, actor, untilMs),
    release: (deliveryId, actor, reason) => act('release', deliveryId, actor, reason),
    reject: (deliveryId, actor, reason) => act('reject', deliveryId, actor, reason),
    holdDelivery: (deliveryId, actor, reason) => act('hold_delivery', deliveryId, actor, reason),
    cancel: (deliveryId, actor, reason) => act('cancel', deliveryId, actor, reason),
    retire: async (host, actor, reason) => {
      const reply = await call('retire', [host, actor, reason])
      return { host: text(reply, 'host'), more: number(reply, 'more') === 1, logId: text(reply, 'log_id') }
    },
    lift: async (kind, scope, actor) => {
      const reply = await call('lift', [kind, scope, actor])
      return {
        fence: text(reply, 'fence'),
        reason: text(reply, 'reason'),
        hostsRung: number(reply, 'rung'),
        left: number(reply, 'left'),
        logId: text(reply, 'log_id'),
      }
    },
    why: async (deliveryId) => whyReplyOf(await call('why', [deliveryId], { readOnly: true })),
    addPrincipal: async (principal, actor) => {
      const reply = await call('add_principal', [...principalArguments(principal), actor])
      return { createdAt: number(reply, 'created_at'), logId: text(reply, 'log_id') }
    },
    revokePrincipal: async (name, actor, reason) => {
      const reply = await call('revoke_principal', [name, actor, reason])
      return {
        name: text(reply, 'name'),
        revokedAt: number(reply, 'revoked_at'),
        logId: text(reply, 'log_id'),
      }
    },
    configure: async (changes, actor) => ({
      logId: text(await call('configure', [actor, ...Object.entries(changes).flat()]), 'log_id'),
    }),
  }
}

function acceptArguments(message: PreparedMessage): Argument[] {
  return [
    message.key,
    message.fingerprint,
    message.conversation,
    message.sender,
    message.parent,
    message.contentType,
    message.sha256,
    message.deliverBy,
    message.executeBy,
    message.resendOf,
    message.payload,
    ...message.recipients,
  ]
}

function principalArguments(principal: NewPrincipal): Argument[] {
  const { name, role, host, scopes, anySender, tokenSha256, certificateSha256 } = principal
  return [
    name,
    role,
    host ?? '',
    scopes === undefined ? '' : JSON.stringify(scopes),
    anySender === true ? 1 : 0,
    tokenSha256 ?? '',
    certificateSha256 ?? '',
  ]
}

/** One of a batch: what it was answered, or what it was refused with. */
function acceptedOrNot(item: unknown): FanOutReply | Error {
  const reply = fieldsOf(item)
  const failure = optionalText(reply, 'failure')
  return failure === undefined ? fanOutReplyOf(reply) : failureOfReply(failure)
}

function fanOutReplyOf(reply: Fields): FanOutReply {
  return {
    id: text(reply, 'id'),
    replayed: optionalText(reply, 'replayed') === '1',
    recipients: number(reply, 'recipients'),
    made: number(reply, 'made'),
    logId: text(reply, 'log_id'),
    deliveries: listOf(reply, 'deliveries').map((item) => {
      const fields = fieldsOf(item)
      return {
        id: text(fields, 'id'),
        host: text(fields, 'host'),
        ...present('session', optionalText(fields, 'session')),
        state: stateOf(text(fields, 'state')),
      }
    }),
  }
}

function whyReplyOf(reply: Fields): WhyReply {
  return {
    id: text(reply, 'id'),
    state: stateOf(text(reply, 'state')),
    reason: text(reply, 'reason'),
    detail: text(reply, 'detail'),
    host: text(reply, 'host'),
    ...present('owner', optionalText(reply, 'owner')),
    epoch: number(reply, 'epoch'),
    attempts: number(reply, 'attempts'),
  }
}
