import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import type { OperatorReply } from '../contract/delivery-views.js'
import { HoldfastError } from '../contract/errors.js'
import type { PendingEntry } from '../contract/host-views.js'
import type {
  Accepted,
  ActOptions,
  BulkFilter,
  BulkOptions,
  FenceOptions,
  HubCalls,
  OperatorAct,
  PageOptions,
  Resolution,
} from '../contract/hub.js'
import { messageId } from '../contract/ids.js'
import type { MessageInput } from '../contract/message.js'
import { checkOptions } from '../contract/options.js'
import { allOf } from '../contract/pages.js'
import { openBlockingReader } from '../record/blocking-reader.js'
import { openStore, type Store } from '../record/connections.js'
import { functionsOf, type InitReply } from '../record/functions.js'
import { type Keys, keysOf } from '../record/keys.js'
import { loadLibrary } from '../record/library.js'
import { readerOf } from '../record/reader.js'
import { acceptMessage, createAccepting, resendMessage } from './accept.js'
import { type Attesting, keepAttesting } from './attestation.js'
import { auditRecord } from './audit.js'
import { actOnMany } from './bulk.js'
import { cachedFor } from './cached.js'
import { changeSettings, readConfiguration } from './configuration.js'
import { listDeliveries } from './delivery-pages.js'
import { hostNames } from './delivery-places.js'
import { tellOfTrouble } from './durability.js'
import { listEffects, readEffect } from './effects.js'
import { readEvents } from './events.js'
import { type HubOptions, hubForm, type InitOptions, initForm } from './hub-options.js'
import { keepLibraries } from './libraries.js'
import { listFences, listHeld, listHosts, listPending, listUnknown, readCounts, readHost } from './lists.js'
import { readLogPage } from './log.js'
import { createLogTail, type LogTail } from './log-tail.js'
import { listMessages, readPayload } from './messages.js'
import { readOverview } from './overview.js'
import type { HubParts } from './parts.js'
import { addPrincipal, readPrincipal, readPrincipals } from './principals.js'
import { type Repaired, repairObligations } from './repair.js'
import { listSessions, readSession, rehomeSession } from './sessions.js'
import { readSweeps } from './sweeps.js'
import { untilClosed } from './until-closed.js'
import { readDelivery, readMessage } from './views.js'
import { waitForMessage } from './wait.js'

export type { HubOptions, InitOptions } from './hub-options.js'

/**
 * A hub over its record (contract section 1). Stateless: any number of them may serve one record. What crashes leave
 * behind and what falls due is dealt with by sweeps: one process at least has to run them (`holdfast serve`,
 * `holdfast/fastify`, or `startSweeps` of `holdfast/sweeps`).
 */
export interface Hub extends HubCalls {
  readonly name: string
  /** As over HTTP, but nobody is the sender unless named. */
  accept(message: MessageInput): Promise<Accepted>
  /** Completes the fan-outs that were cut. Runs by itself at the start. */
  repair(): Promise<Repaired>
}

const defaultDeadlineMs = 10_000
const overviewForMs = 2000

/**
 * Opens a hub: connects, brings the function library to the server and starts to complete cut fan-outs.
 * @throws STORE_UNKNOWN when there is no record (run `holdfast init`), STORE_UNAVAILABLE,
 *   INVALID_ARGUMENT
 */
export async function openHub(options: HubOptions): Promise<Hub> {
  checkOptions('openHub', hubForm, options)
  const opened = await openHubParts(options)
  await tellOfTrouble(opened, options.onTrouble)
  return opened.hub
}

/**
 * Makes the identity of a record, which nothing else ever does. With `afterLoss`, on a server that lost it:
 * epochs go on above all that were ever given.
 * @throws NOTHING_LOST, RECORD_DAMAGED, STORE_UNAVAILABLE, INVALID_ARGUMENT
 */
export async function initRecord(options: InitOptions): Promise<InitReply> {
  checkOptions('initRecord', initForm, options)
  const keys = keysOf(options.hub ?? 'hf')
  const store = await openStore({
    url: options.redis,
    tag: keys.tag,
    name: 'holdfast-init',
    luaDir: options.luaDir,
  })
  try {
    await loadLibrary(store, { luaDir: options.luaDir })
    const made = await functionsOf(store, keys.tag).init(randomUUID(), options.afterLoss ?? false)
    await tellOfTrouble({ store, keys, reader: readerOf(store, keys) }, options.onTrouble)
    return made
  } finally {
    await store.close()
  }
}

/** What a server and the sweeps need of a hub beside its calls. */
export interface OpenedHub extends HubParts {
  readonly hub: Hub
  readonly tail: LogTail
  readonly attesting: Attesting
}

/** Options of {@link openHubParts}. */
export interface OpeningOptions extends HubOptions {
  /** Milliseconds for the first connection; as of a store when absent. */
  readonly connectDeadlineMs?: number | undefined
}

/** As {@link openHub}, with the parts that it is made of. */
export async function openHubParts(options: OpeningOptions): Promise<OpenedHub> {
  const keys = keysOf(options.hub ?? 'hf')
  const { redis: url, luaDir, onCall, deadlineMs, connectDeadlineMs } = options
  const name = 'holdfast-hub'
  const store = await openStore({ url, tag: keys.tag, name, luaDir, onCall, deadlineMs, connectDeadlineMs })
  try {
    await loadLibrary(store, { luaDir })
    await readerOf(store, keys).all([])
  } catch (error) {
    await store.close()
    throw error
  }
  return hubOn(store, keys, options)
}

function hubOn(store: Store, keys: Keys, options: HubOptions): OpenedHub {
  const functions = functionsOf(store, keys.tag)
  const reader = readerOf(store, keys)
  const deadlineMs = options.deadlineMs ?? defaultDeadlineMs
  const attesting = keepAttesting(store, functions, (ids) => options.onLost?.(ids))
  const parts: HubParts = { store, reader, keys, functions, deadlineMs, onPoint: options.onPoint }
  const acceptParts = { ...parts, accepting: createAccepting(functions, attesting.accepted) }
  const libraries = keepLibraries(options.redis, options.luaDir)
  const closing = new AbortController()
  setMaxListeners(0, closing.signal)
  const openTail = () => openBlockingReader({ url: options.redis, tag: keys.tag, name: 'holdfast-tail' })
  const tail = createLogTail(openTail, reader, keys)

  const repair = () => repairObligations(parts, () => closing.signal.aborted)
  const repairing = repair().catch((error: unknown) => {
    if (!closing.signal.aborted) options.onRepairError?.(error)
  })
  const overview = cachedFor(overviewForMs, () => readOverview(reader, keys, options.hub ?? 'hf'))
  const pendingPage = (host: string, page?: PageOptions) => listPending(reader, keys, host, page)
  const acts: Record<OperatorAct, (id: string, act: ActOptions) => Promise<OperatorReply>> = {
    release: (id, act) => functions.release(id, act.actor, act.reason),
    reject: (id, act) => functions.reject(id, act.actor, act.reason),
    hold: (id, act) => functions.holdDelivery(id, act.actor, act.reason),
    cancel: (id, act) => functions.cancel(id, act.actor, act.reason),
  }
  const bulkParts = {
    list: (filter: BulkFilter, { cursor, limit }: BulkOptions) =>
      listDeliveries(reader, keys, { ...filter, cursor, limit }),
    act: (act: OperatorAct, id: string, how: BulkOptions) => acts[act](id, how),
  }

  const hub: Hub = {
    name: options.hub ?? 'hf',
    accept: (input) => acceptMessage(acceptParts, input),
    resend: (id, resend) => resendMessage(acceptParts, id, resend),
    repair,
    message: (id) => readMessage(reader, keys, id),
    messagePage: (filter) => listMessages(reader, keys, filter),
    payload: (id) => readPayload(store, reader, keys, id),
    waitFor: async (id, timeoutMs, signal) => {
      const isOver = () => signal?.aborted === true || closing.signal.aborted
      return waitForMessage({ reader, keys, tail }, messageId(id), timeoutMs, { signal, isOver })
    },
    delivery: (id) => readDelivery(reader, keys, id),
    deliveries: (filter = {}) => listDeliveries(reader, keys, filter),
    why: (id) => functions.why(id),
    pending: async (host) => {
      const hosts = host === undefined ? await hostNames(reader, keys) : [host]
      const lists: PendingEntry[][] = []
      for (const each of hosts) lists.push(await allOf((page) => pendingPage(each, page)))
      return lists.flat()
    },
    pendingPage,
    held: () => allOf((page) => listHeld(reader, keys, page)),
    heldPage: (page) => listHeld(reader, keys, page),
    unknown: () => allOf((page) => listUnknown(reader, keys, page)),
    unknownPage: (page) => listUnknown(reader, keys, page),
    hosts: () => allOf((page) => listHosts(reader, keys, page)),
    hostPage: (page) => listHosts(reader, keys, page),
    host: (name) => readHost(reader, keys, name),
    counts: () => readCounts(reader, keys),
    overview,
    logPage: (page) => readLogPage(reader, keys, page),
    events: (given = {}) => readEvents({ reader, keys, tail }, given, closing.signal),
    fences: () => listFences(reader, keys),
    pause: (scope, fence) => functions.pause(scope, fence.reason, fence.actor, untilMs(fence)),
    hold: (scope, fence) => functions.hold(scope, fence.reason, fence.actor, untilMs(fence)),
    block: (scope, fence) => functions.block(scope, fence.reason, fence.actor, untilMs(fence)),
    lift: (kind, scope, actor) => functions.lift(kind, scope, actor),
    drain: (host, actor) => functions.pause(`host:${host}`, 'drain', actor),
    retire: async (host, act) => {
      while ((await functions.retire(host, act.actor, act.reason)).more);
    },
    release: acts.release,
    reject: acts.reject,
    holdDelivery: acts.hold,
    cancel: acts.cancel,
    actOnMany: (act, filter, how) => actOnMany(bulkParts, act, filter, how),
    claimEffect: functions.claimEffect,
    takeOverEffect: functions.takeOverEffect,
    settleEffect: functions.settleEffect,
    openSession: functions.openSession,
    closeSession: functions.closeSession,
    rehome: (id, host, act) => rehomeSession(functions, id, host, act),
    session: (id) => readSession(reader, keys, id),
    sessionPage: (page) => listSessions(reader, keys, page),
    effect: (id) => readEffect(reader, keys, id),
    effectPage: (page) => listEffects(reader, keys, page),
    resolveAttempt: async (id, resolution, actor) =>
      functions.resolveAttempt(id, checkedResolution(resolution), actor),
    resolveEffect: async (id, resolution, actor) =>
      functions.resolveEffect(id, checkedResolution(resolution), actor),
    resolveDelivery: functions.resolveDelivery,
    sweeps: () => readSweeps(reader, keys),
    audit: (onProgress) => auditRecord(parts, { repair: false, signal: closing.signal, onProgress }),
    configuration: () => readConfiguration(reader, keys),
    configure: (changes, actor) => changeSettings(functions, changes, actor),
    principals: async () => (await readPrincipals(reader, keys)).map(({ view }) => view),
    principal: (name) => readPrincipal(reader, keys, name),
    addPrincipal: (principal, actor) => addPrincipal({ functions, reader, keys }, principal, actor),
    revokePrincipal: async (name, act) => {
      await functions.revokePrincipal(name, act.actor, act.reason)
    },
    close: async () => {
      closing.abort()
      await attesting.stop()
      await libraries.stop()
      await tail.close()
      await repairing
      await store.close()
    },
  }
  return { ...parts, hub: untilClosed(hub, closing.signal), tail, attesting }
}

/** A result of which nothing is said is null, as in a report. @throws INVALID_ARGUMENT */
function checkedResolution(resolution: Resolution): Resolution {
  const { as, result } = resolution
  if (as === 'result') return { ...resolution, result: jsonText(result ?? 'null') }
  if (result === undefined) return resolution
  throw new HoldfastError('INVALID_ARGUMENT', `a result belongs to "as": "result", not to "${as}"`)
}

/** @throws INVALID_ARGUMENT */
function jsonText(text: string): string {
  try {
    JSON.parse(text)
    return text
  } catch {
    throw new HoldfastError('INVALID_ARGUMENT', 'the result is no JSON text')
  }
}

function untilMs(fence: FenceOptions): number | undefined {
  return fence.until instanceof Date ? fence.until.getTime() : fence.until
}
