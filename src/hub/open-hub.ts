import { randomUUID } from 'node:crypto'
import { messageId } from '../contract/ids.js'
import type { MessageInput, Recipient } from '../contract/message.js'
import type { OnPoint } from '../contract/points.js'
import { openBlockingReader, openStore, type Store } from '../record/connections.js'
import {
  type FenceReply,
  functionsOf,
  type InitReply,
  type LiftReply,
  type OperatorReply,
  type WhyReply,
} from '../record/functions.js'
import { type Keys, keysOf } from '../record/keys.js'
import { loadLibrary } from '../record/library.js'
import { readerOf } from '../record/reader.js'
import { type Accepted, type AcceptParts, acceptMessage, resendMessage } from './accept.js'
import { changeSetting, readConfiguration, type SettingView } from './configuration.js'
import { type DeliveryFilter, type DeliveryPage, listDeliveries } from './delivery-pages.js'
import {
  type FenceView,
  type HeldEntry,
  type HostView,
  listFences,
  listHeld,
  listHosts,
  listPending,
  listUnknown,
  type PendingEntry,
  readCounts,
  type UnknownEntry,
} from './lists.js'
import { type Repaired, repairObligations } from './repair.js'
import { type DeliveryView, type MessageView, readDelivery, readMessage } from './views.js'
import { createLogBell, type LogBell, waitForMessage } from './wait.js'

export interface HubOptions {
  /** URL of the Redis server that holds the record. */
  readonly redis: string
  /** Name of the hub; `hf` when absent. */
  readonly hub?: string | undefined
  /** Milliseconds in which accept and operator calls must be answered; 10,000 when absent. */
  readonly deadlineMs?: number | undefined
  /** Told of repairs that fail; they are tried again at the next start or `repair()`. */
  readonly onRepairError?: ((error: unknown) => void) | undefined
  /** Where the Lua sources are; the package's own when absent. */
  readonly luaDir?: string | undefined
  /** Tests only: see `points`. */
  readonly onPoint?: OnPoint | undefined
}

/** Why and by whom a fence is set; kept with it. */
export interface FenceOptions {
  readonly reason: string
  readonly actor: string
  /** When it lapses by itself: Date or Unix ms. */
  readonly until?: Date | number | undefined
}

/** Who does an operator's act, and why; kept on the row and in the log. */
export interface ActOptions {
  readonly reason: string
  readonly actor: string
}

/**
 * A hub over its record (contract section 1). Stateless: any number of them may serve one record. Every call
 * has a deadline and may be repeated; errors are HoldfastError with a code of the catalogue.
 */
export interface Hub {
  readonly name: string
  /**
   * Accepts a message and makes its deliveries. Once this resolves nothing of it can be lost; when it throws
   * STORE_UNAVAILABLE or DEADLINE_EXCEEDED, repeat it with the same key.
   * @throws INVALID_ARGUMENT, NO_ROUTE, PAYLOAD_TOO_LARGE, TOO_MANY_RECIPIENTS, IDEMPOTENCY_MISMATCH
   */
  accept(message: MessageInput): Promise<Accepted>
  /** Accepts the message again under a new key, with a link to the first. @throws MESSAGE_NOT_FOUND */
  resend(messageId: string, options: { key: string; to?: readonly Recipient[] }): Promise<Accepted>
  /** Completes the fan-outs that were cut. Runs by itself at the start. */
  repair(): Promise<Repaired>
  /** @throws MESSAGE_NOT_FOUND */
  message(id: string): Promise<MessageView>
  /** The message once all its deliveries are settled, or as it stands after `timeoutMs`. */
  waitFor(messageId: string, timeoutMs: number): Promise<MessageView>
  /** @throws DELIVERY_NOT_FOUND */
  delivery(id: string): Promise<DeliveryView>
  deliveries(filter?: DeliveryFilter): Promise<DeliveryPage>
  why(deliveryId: string): Promise<WhyReply>
  pending(host?: string): Promise<PendingEntry[]>
  held(): Promise<HeldEntry[]>
  unknown(): Promise<UnknownEntry[]>
  hosts(): Promise<HostView[]>
  counts(): Promise<Record<string, number>>
  fences(): Promise<FenceView[]>
  /** What the scope covers waits in its place until the pause is lifted or lapses. */
  pause(scope: string, options: FenceOptions): Promise<FenceReply>
  /** What the scope covers goes to the held queue at its next claim or begin. */
  hold(scope: string, options: FenceOptions): Promise<FenceReply>
  /** What the scope covers fails at its next claim or begin. */
  block(scope: string, options: FenceOptions): Promise<FenceReply>
  /** What a pause parked is served again, what a hold parked is queued again. @throws FENCE_NOT_FOUND */
  lift(kind: 'pause' | 'hold' | 'block', scope: string, actor: string): Promise<LiftReply>
  /** Pauses a host with the reason `drain`. */
  drain(host: string, actor: string): Promise<FenceReply>
  /** Takes a host out for good: its idle deliveries go to the held queue. @throws HOST_NOT_FOUND */
  retire(host: string, options: ActOptions): Promise<void>
  /** Held to queued; it passes the holds that stand now, once. @throws NOT_HELD, HOST_RETIRED */
  release(deliveryId: string, options: ActOptions): Promise<OperatorReply>
  /** Held to failed. @throws NOT_HELD */
  reject(deliveryId: string, options: ActOptions): Promise<OperatorReply>
  /** An idle delivery to the held queue. @throws EXECUTING, ALREADY_SETTLED, WRONG_STATE */
  holdDelivery(deliveryId: string, options: ActOptions): Promise<OperatorReply>
  /** An idle or held delivery to failed. @throws EXECUTING, ALREADY_SETTLED, WRONG_STATE */
  cancel(deliveryId: string, options: ActOptions): Promise<OperatorReply>
  configuration(): Promise<SettingView[]>
  /** Changes a tunable for every process at once. @throws INVALID_ARGUMENT */
  configure(name: string, value: number | string): Promise<void>
  close(): Promise<void>
}

const defaultDeadlineMs = 10_000

/**
 * Opens a hub: connects, brings the function library to the server and starts to complete cut fan-outs.
 * @throws STORE_UNKNOWN when there is no record (run `holdfast init`), STORE_UNAVAILABLE
 */
export async function openHub(options: HubOptions): Promise<Hub> {
  const keys = keysOf(options.hub ?? 'hf')
  const store = await openStore({ url: options.redis, name: 'holdfast-hub', luaDir: options.luaDir })
  try {
    await loadLibrary(store, { luaDir: options.luaDir })
    await readerOf(store, keys).all([])
  } catch (error) {
    await store.close()
    throw error
  }
  return hubOn(store, keys, options)
}

/**
 * Makes the identity of a record, which nothing else ever does. With `afterLoss`, on a server that lost it:
 * epochs go on above all that were ever given.
 * @throws NOTHING_LOST, RECORD_DAMAGED, STORE_UNAVAILABLE
 */
export async function initRecord(options: {
  readonly redis: string
  readonly hub?: string | undefined
  readonly afterLoss?: boolean | undefined
  readonly luaDir?: string | undefined
}): Promise<InitReply> {
  const keys = keysOf(options.hub ?? 'hf')
  const store = await openStore({ url: options.redis, name: 'holdfast-init', luaDir: options.luaDir })
  try {
    await loadLibrary(store, { luaDir: options.luaDir })
    return await functionsOf(store, keys.tag).init(randomUUID(), options.afterLoss ?? false)
  } finally {
    await store.close()
  }
}

function hubOn(store: Store, keys: Keys, options: HubOptions): Hub {
  const functions = functionsOf(store, keys.tag)
  const reader = readerOf(store, keys)
  const deadlineMs = options.deadlineMs ?? defaultDeadlineMs
  const parts: AcceptParts = { store, reader, keys, functions, deadlineMs, onPoint: options.onPoint }
  const closing = new AbortController()
  let bell: LogBell | undefined

  const repair = () => repairObligations(parts, () => closing.signal.aborted)
  const repairing = repair().catch((error: unknown) => {
    if (!closing.signal.aborted) options.onRepairError?.(error)
  })

  return {
    name: options.hub ?? 'hf',
    accept: (input) => acceptMessage(parts, input),
    resend: (id, resend) => resendMessage(parts, id, resend),
    repair,
    message: (id) => readMessage(reader, keys, id),
    waitFor: async (id, timeoutMs) => {
      bell ??= createLogBell(openBlockingReader({ url: options.redis, name: 'holdfast-wait' }), keys.log)
      return waitForMessage({ reader, keys, bell }, messageId(id), timeoutMs, closing.signal)
    },
    delivery: (id) => readDelivery(reader, keys, id),
    deliveries: (filter = {}) => listDeliveries(reader, keys, filter),
    why: (id) => functions.why(id),
    pending: (host) => listPending(reader, keys, host),
    held: () => listHeld(reader, keys),
    unknown: () => listUnknown(reader, keys),
    hosts: () => listHosts(reader, keys),
    counts: () => readCounts(reader, keys),
    fences: () => listFences(reader, keys),
    pause: (scope, fence) => functions.pause(scope, fence.reason, fence.actor, untilMs(fence)),
    hold: (scope, fence) => functions.hold(scope, fence.reason, fence.actor, untilMs(fence)),
    block: (scope, fence) => functions.block(scope, fence.reason, fence.actor, untilMs(fence)),
    lift: (kind, scope, actor) => functions.lift(kind, scope, actor),
    drain: (host, actor) => functions.pause(`host:${host}`, 'drain', actor),
    retire: async (host, act) => {
      while ((await functions.retire(host, act.actor, act.reason)).more);
    },
    release: (id, act) => functions.release(id, act.actor, act.reason),
    reject: (id, act) => functions.reject(id, act.actor, act.reason),
    holdDelivery: (id, act) => functions.holdDelivery(id, act.actor, act.reason),
    cancel: (id, act) => functions.cancel(id, act.actor, act.reason),
    configuration: () => readConfiguration(reader, keys),
    configure: (name, value) => changeSetting({ store, reader, keys }, name, String(value)),
    close: async () => {
      closing.abort()
      await bell?.close()
      await repairing
      await store.close()
    },
  }
}

function untilMs(fence: FenceOptions): number | undefined {
  return fence.until instanceof Date ? fence.until.getTime() : fence.until
}
