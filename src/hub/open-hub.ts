import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../contract/backoff.js'
import { isHoldfastError } from '../contract/errors.js'
import { type MessageInput, type PreparedMessage, prepareMessage } from '../contract/message.js'
import { aroundCall, type OnPoint } from '../contract/points.js'
import type { DeliveryState } from '../contract/states.js'
import { openStore, type Store } from '../record/connections.js'
import {
  type FanOutReply,
  type FenceReply,
  type Functions,
  functionsOf,
  type InitReply,
  type LiftReply,
  type WhyReply,
} from '../record/functions.js'
import { type Keys, keysOf } from '../record/keys.js'
import { loadLibrary } from '../record/library.js'
import { type Reader, readerOf } from '../record/reader.js'
import {
  type DeliveryFilter,
  type DeliveryPage,
  type FenceView,
  listDeliveries,
  listFences,
  listHosts,
  listPending,
  listUnknown,
  type PendingEntry,
  readCounts,
  type UnknownEntry,
} from './lists.js'
import { type DeliveryView, type MessageView, readDelivery, readMessage } from './views.js'

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

/** The answer to accept: the message's id and its deliveries, the same for every repeat of the key. */
export interface Accepted {
  readonly id: string
  readonly deliveries: readonly { id: string; host: string; session?: string; state: DeliveryState }[]
  readonly fanOut: 'complete' | 'pending'
  /** True when the key was known: these are the first ids, with their present states. */
  readonly replayed: boolean
}

/** Why and by whom a fence is set; kept with it. */
export interface FenceOptions {
  readonly reason: string
  readonly actor: string
  /** When it lapses by itself: Date or Unix ms. */
  readonly until?: Date | number | undefined
}

/** Messages made whole by {@link Hub.repair}. */
export interface Repaired {
  readonly messages: number
  readonly deliveries: number
  /** Messages whose rows contradict themselves; they stay owed. */
  readonly stuck: number
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
  /** Completes the fan-outs that were cut. Runs by itself at the start. */
  repair(): Promise<Repaired>
  message(id: string): Promise<MessageView>
  delivery(id: string): Promise<DeliveryView>
  deliveries(filter?: DeliveryFilter): Promise<DeliveryPage>
  why(deliveryId: string): Promise<WhyReply>
  pending(host?: string): Promise<PendingEntry[]>
  unknown(): Promise<UnknownEntry[]>
  hosts(): Promise<string[]>
  counts(): Promise<Record<string, number>>
  fences(): Promise<FenceView[]>
  /** What the scope covers waits in its place until the pause is lifted or lapses. */
  pause(scope: string, options: FenceOptions): Promise<FenceReply>
  /** What the scope covers fails at its next claim or begin. */
  block(scope: string, options: FenceOptions): Promise<FenceReply>
  lift(kind: 'pause' | 'hold' | 'block', scope: string, actor: string): Promise<LiftReply>
  close(): Promise<void>
}

const defaultDeadlineMs = 10_000
const fanOutChunk = 128
const repairAtOnce = 100
const retry = { leastMs: 20, mostMs: 1000 }

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
  const { onPoint } = options
  let closing = false

  const repair = () => repairAll(reader, keys, functions, onPoint, () => closing)
  const repairing = repair().catch((error: unknown) => {
    if (!closing) options.onRepairError?.(error)
  })

  return {
    name: options.hub ?? 'hf',
    accept: async (input) => {
      const message = prepareMessage(input)
      const reply = await untilAnswered(deadlineMs, () => accept(functions, message, onPoint))
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
    },
    repair,
    message: (id) => readMessage(reader, keys, id),
    delivery: (id) => readDelivery(reader, keys, id),
    deliveries: (filter = {}) => listDeliveries(reader, keys, filter),
    why: (id) => functions.why(id),
    pending: (host) => listPending(reader, keys, host),
    unknown: () => listUnknown(reader, keys),
    hosts: () => listHosts(reader, keys),
    counts: () => readCounts(reader, keys),
    fences: () => listFences(reader, keys),
    pause: (scope, fence) => functions.pause(scope, fence.reason, fence.actor, untilMs(fence)),
    block: (scope, fence) => functions.block(scope, fence.reason, fence.actor, untilMs(fence)),
    lift: (kind, scope, actor) => functions.lift(kind, scope, actor),
    close: async () => {
      closing = true
      await repairing
      await store.close()
    },
  }
}

function accept(functions: Functions, message: PreparedMessage, onPoint: OnPoint | undefined) {
  return aroundCall('accept', onPoint, (options) => functions.accept(message, options))
}

/** Repeats a call that is safe to repeat until it is answered or the deadline has passed. */
async function untilAnswered<Reply>(deadlineMs: number, call: () => Promise<Reply>): Promise<Reply> {
  const deadlineAt = performance.now() + deadlineMs
  for (let failures = 1; ; failures += 1) {
    try {
      return await call()
    } catch (error) {
      const waitMs = backoffMs(retry, failures)
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE', 'DEADLINE_EXCEEDED')) throw error
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

function fanOut(functions: Functions, id: string, onPoint: OnPoint | undefined): Promise<FanOutReply> {
  return aroundCall('fan_out', onPoint, (options) => functions.fanOut(id, fanOutChunk, options))
}

async function repairAll(
  reader: Reader,
  keys: Keys,
  functions: Functions,
  onPoint: OnPoint | undefined,
  stopped: () => boolean,
): Promise<Repaired> {
  let messages = 0
  let deliveries = 0
  let stuck = 0
  while (!stopped()) {
    const owing = await reader.strings(['ZRANGE', keys.obligations, stuck, stuck + repairAtOnce - 1])
    if (owing.length === 0) break
    for (const id of owing) {
      const made = await repairOne(functions, id, onPoint, stopped)
      if (made === undefined) stuck += 1
      deliveries += made ?? 0
      messages += made ? 1 : 0
    }
  }
  return { messages, deliveries, stuck }
}

/** Deliveries made for one message; undefined where the record is in its way, which a later repair meets again. */
async function repairOne(
  functions: Functions,
  id: string,
  onPoint: OnPoint | undefined,
  stopped: () => boolean,
): Promise<number | undefined> {
  let deliveries = 0
  try {
    for (let complete = false; !complete && !stopped(); ) {
      const reply = await fanOut(functions, id, onPoint)
      deliveries += reply.deliveries.length
      complete = reply.made >= reply.recipients
    }
    return deliveries
  } catch (error) {
    if (isHoldfastError(error, 'STORE_UNAVAILABLE', 'DEADLINE_EXCEEDED', 'STORE_UNKNOWN')) throw error
    return undefined
  }
}

function briefOf(view: DeliveryView): Accepted['deliveries'][number] {
  const { id, host, session, state } = view
  return session === undefined ? { id, host, state } : { id, host, session, state }
}

function untilMs(fence: FenceOptions): number | undefined {
  return fence.until instanceof Date ? fence.until.getTime() : fence.until
}
