import type {
  AcceptedDelivery,
  AttemptResolved,
  BulkReply,
  DeliveryView,
  HeldEntry,
  MessageView,
  OperatorReply,
  UnknownEntry,
  WhyReply,
} from './delivery-views.js'
import type { EffectView } from './effect-views.js'
import type { EffectCalls, EffectSettled } from './effects.js'
import type { EventsOptions, HubEvent } from './events.js'
import type { FenceReply, FenceView, HostView, LiftReply, PendingEntry } from './host-views.js'
import type { LogFilter } from './log-filter.js'
import type { OutgoingMessage, Recipient } from './message.js'
import type { MessageHead, Overview } from './overview.js'
import type { PrincipalView } from './principal-views.js'
import type { Role } from './principals.js'
import type { SessionReply, SessionView } from './session-views.js'
import type { SessionClosing, SessionOpening } from './sessions.js'
import type { DeliveryState } from './states.js'
import type { AuditView, SettingView, SweepView } from './upkeep-views.js'
import type { LogEvent } from './wire-log.js'

/** The answer to accept: the message's id and its deliveries, the same for every repeat of the key. */
export interface Accepted {
  readonly id: string
  readonly deliveries: readonly AcceptedDelivery[]
  readonly fanOut: 'complete' | 'pending'
  /** True when the key was known: these are the first ids, with their present states. */
  readonly replayed: boolean
}

/** The states in which a delivery is in a list of its own; finished ones are found through their message. */
export type LiveState = Exclude<DeliveryState, 'failed'>

/** A page of a list. */
export interface PageOptions {
  /** From the previous page. */
  readonly cursor?: string | undefined
  /** At most this many, 1 to 1000; 100 when absent. */
  readonly limit?: number | undefined
}

/** Deliveries that match every member. */
export interface DeliveryFilter extends PageOptions {
  readonly host?: string | undefined
  readonly state?: LiveState | undefined
  readonly conversation?: string | undefined
  readonly session?: string | undefined
  /** All deliveries of this message, in every state, by number. */
  readonly message?: string | undefined
  /** The first words of why it is held or in doubt. */
  readonly reason?: string | undefined
}

/** One page of deliveries. */
export interface DeliveryPage {
  readonly deliveries: readonly DeliveryView[]
  /** Absent at the end. */
  readonly cursor?: string | undefined
}

/** One page of a list, and where the next begins: absent at the end. */
export interface Page<Entry> {
  readonly entries: readonly Entry[]
  readonly cursor?: string | undefined
}

/** Messages that match every member. An id or a key names one, of whatever age. */
export interface MessageFilter extends PageOptions {
  readonly id?: string | undefined
  readonly key?: string | undefined
  readonly conversation?: string | undefined
  readonly sender?: string | undefined
}

/** What a message carries. */
export interface Payload {
  readonly bytes: Uint8Array
  readonly contentType?: string | undefined
  /** Of the bytes, lower-case hex. */
  readonly sha256: string
}

/** A page of the log, of the entries that a filter wants. */
export interface LogPageOptions extends LogFilter, PageOptions {}

/** Why and by whom a fence is set; kept with it. */
export interface FenceOptions {
  readonly reason: string
  /** Over HTTP the actor is the principal, whatever is said here. */
  readonly actor: string
  /** When it lapses by itself: Date or Unix ms. */
  readonly until?: Date | number | undefined
}

/** Who does an operator's act, and why; kept on the row and in the log. Over HTTP the actor is the principal. */
export interface ActOptions {
  readonly reason: string
  readonly actor: string
}

/** What an operator may do to deliveries, one or many. */
export const operatorActs = ['release', 'reject', 'hold', 'cancel'] as const
/** `release`, `reject`, `hold` or `cancel`. */
export type OperatorAct = (typeof operatorActs)[number]

/** Which deliveries an act on many is for: all that match every member. */
export interface BulkFilter {
  readonly state: LiveState
  readonly host?: string | undefined
  readonly conversation?: string | undefined
  readonly session?: string | undefined
  /** The first words of why it is held, such as `poison` or `fence hold:hub`. */
  readonly reason?: string | undefined
}

/** How an act on many goes, page by page. */
export interface BulkOptions extends ActOptions, PageOptions {
  /** Counts, and changes nothing. */
  readonly dryRun?: boolean | undefined
}

/** Hosts that want somebody: with work and no live node, or with a node that is silent. */
export const hostConcerns = ['stranded', 'silent'] as const
/** `stranded` or `silent`. */
export type HostConcern = (typeof hostConcerns)[number]

/** Which hosts a page lists. */
export interface HostPageOptions extends PageOptions {
  /** Stranded: as the sweep `stale` saw it last. Silent: a node has not left, and is not heard within `stale_after_ms`. */
  readonly only?: HostConcern | undefined
}

/** Which effects a page lists. */
export interface EffectPageOptions extends PageOptions {
  /** Those that are claimed and not settled, the longest first. */
  readonly executing?: boolean | undefined
}

/** What an operator says of an outcome that nobody else can know, and how it is known. */
export interface Resolution {
  readonly as: 'result' | 'terminal' | 'not_sent'
  readonly evidence: string
  /** Also while its executor may live: whatever that does cannot be taken back. */
  readonly force?: boolean | undefined
  /** JSON text, for a result. */
  readonly result?: string | undefined
}

/** What an operator says of a delivery whose copy is in doubt, and how it is known. */
export interface DeliveryResolution {
  readonly as: 'queued' | 'failed'
  readonly evidence: string
}

/** A principal to be added. Without a certificate it gets a token. */
export interface PrincipalInput {
  readonly name: string
  readonly role: Role
  /** For a node: the one host it serves. */
  readonly host?: string | undefined
  /** For a node: directories of the sessions it may serve, canonical absolute paths. */
  readonly scopes?: readonly string[] | undefined
  /** For a producer: it may name other senders than itself. */
  readonly anySender?: boolean | undefined
  /** PEM of a client certificate to pin instead of making a token. */
  readonly certificate?: string | undefined
  /** SHA-256 of a token that exists already, lower-case hex: none is made. With it a repeat changes nothing. */
  readonly tokenSha256?: string | undefined
}

/** The token is shown this once and stored nowhere. */
export interface PrincipalAdded {
  readonly principal: PrincipalView
  readonly token?: string | undefined
}

/**
 * What a hub does for producers and operators (contract sections 1 to 8), over the record or over HTTP alike.
 * Every call has a deadline and may be repeated; errors are HoldfastError with a code of the catalogue.
 */
export interface HubCalls extends EffectCalls {
  /**
   * Accepts a message and makes its deliveries. Once this resolves nothing of it can be lost; when it throws
   * STORE_UNAVAILABLE or DEADLINE_EXCEEDED, repeat it with the same key.
   * The sender is left out over HTTP alone: then it is the principal.
   * Of an empty `to` it is a message without deliveries, settled at once.
   * @throws INVALID_ARGUMENT, NO_ROUTE, PAYLOAD_TOO_LARGE, TOO_MANY_RECIPIENTS, IDEMPOTENCY_MISMATCH
   */
  accept(message: OutgoingMessage): Promise<Accepted>
  /** Accepts the message again under a new key, with a link to the first. @throws MESSAGE_NOT_FOUND */
  resend(messageId: string, options: { key: string; to?: readonly Recipient[] }): Promise<Accepted>
  /** A message with its deliveries. @throws MESSAGE_NOT_FOUND */
  message(id: string): Promise<MessageView>
  /**
   * Accepted messages, the newest first, as far as the log reaches back. A page looks at a bounded number of entries of
   * the log: it may be empty and have a cursor all the same. @throws INVALID_ARGUMENT
   */
  messagePage(filter?: MessageFilter): Promise<Page<MessageHead>>
  /** The bytes of a message. @throws MESSAGE_NOT_FOUND; over HTTP FORBIDDEN to viewers, unless `viewer_payloads` is 1 */
  payload(messageId: string): Promise<Payload>
  /** The message once all its deliveries are settled, or as it stands after `timeoutMs`. */
  waitFor(messageId: string, timeoutMs: number, signal?: AbortSignal): Promise<MessageView>
  /** One delivery. @throws DELIVERY_NOT_FOUND */
  delivery(id: string): Promise<DeliveryView>
  /**
   * Live deliveries by host and state, or those of a message. A page looks at a bounded number of rows: it may be empty
   * and have a cursor all the same. @throws INVALID_ARGUMENT
   */
  deliveries(filter?: DeliveryFilter): Promise<DeliveryPage>
  /** Why a delivery is where it is. @throws DELIVERY_NOT_FOUND */
  why(deliveryId: string): Promise<WhyReply>
  /** The pending lists as Redis has them, each entry beside its row; all of them. */
  pending(host?: string): Promise<PendingEntry[]>
  /** The pending list of one host. */
  pendingPage(host: string, page?: PageOptions): Promise<Page<PendingEntry>>
  /** The held queue, oldest first; all of it. */
  held(): Promise<HeldEntry[]>
  /** The held queue, oldest first. */
  heldPage(page?: PageOptions): Promise<Page<HeldEntry>>
  /** The unknown list, oldest first; all of it. */
  unknown(): Promise<UnknownEntry[]>
  /** The unknown list, oldest first. */
  unknownPage(page?: PageOptions): Promise<Page<UnknownEntry>>
  /** Every host that was ever sent to or joined, by name, with its nodes and what waits for it. */
  hosts(): Promise<HostView[]>
  /** Hosts by name, with their nodes and what waits for them. */
  hostPage(page?: HostPageOptions): Promise<Page<HostView>>
  /** One host; undefined where none of this name was ever seen. */
  host(name: string): Promise<HostView | undefined>
  /** Deliveries by state and attempts by outcome, as counted. */
  counts(): Promise<Record<string, number>>
  /** What shows the hub at a glance; read at most every two seconds. Of a set: the sums over its hubs. */
  overview(): Promise<Overview>
  /**
   * The log, the newest entry first, as far as it reaches back. A page looks at a bounded number of entries: it may be
   * empty and have a cursor all the same. @throws INVALID_ARGUMENT
   */
  logPage(options?: LogPageOptions): Promise<Page<LogEvent>>
  /**
   * The log from now on, or after an event: goes on by itself where the record or the hub was away, without loss while
   * the log reaches back; where it does not, an event `gap` says so. Ends when the signal is aborted, or the hub is
   * closed. @throws INVALID_ARGUMENT
   */
  events(options?: EventsOptions): AsyncGenerator<HubEvent, void, undefined>
  /** The fences that stand, and fields of their hash that no rule reads. */
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
  /** One act on a page of the deliveries that a filter names; the answer's cursor leads to the next. */
  actOnMany(act: OperatorAct, filter: BulkFilter, options: BulkOptions): Promise<BulkReply>
  /**
   * A session is addressable at its host from now on; opening it again begins a new session epoch.
   * @throws SESSION_ELSEWHERE, SCOPE_MISMATCH, SCOPE_NOT_AUTHORISED; SESSION_MISSING, and FORBIDDEN for `asOperator` over
   *   HTTP, where no operator opens it
   */
  openSession(id: string, opening: SessionOpening, actor: string): Promise<SessionReply>
  /** Not addressable any more, for good or until it opens again. @throws STALE_EPOCH, SESSION_NOT_FOUND */
  closeSession(id: string, closing: SessionClosing, actor: string): Promise<SessionReply>
  /**
   * A session, its deliveries and its child sessions live on another host from now on.
   * @throws SESSION_NOT_FOUND, EXECUTING, HOST_NOT_LIVE, SCOPE_MISMATCH
   */
  rehome(id: string, host: string, options: ActOptions): Promise<SessionReply>
  /** One session, open, closed or missing. @throws SESSION_NOT_FOUND for one never opened */
  session(id: string): Promise<SessionView>
  /** Sessions by when they were first opened. */
  sessionPage(page?: PageOptions): Promise<Page<SessionView>>
  /** One effect. @throws EFFECT_NOT_FOUND for one never claimed */
  effect(id: string): Promise<EffectView>
  /** Effects by when they were first claimed; or those that are executing, the longest first. */
  effectPage(page?: EffectPageOptions): Promise<Page<EffectView>>
  /** An operator's word on an unknown outcome; irreversible. @throws EXECUTING, ALREADY_SETTLED, ATTEMPT_NOT_FOUND */
  resolveAttempt(id: string, resolution: Resolution, actor: string): Promise<AttemptResolved>
  /** An operator's word on an effect; irreversible. @throws EXECUTING, ALREADY_SETTLED, EFFECT_NOT_FOUND */
  resolveEffect(id: string, resolution: Resolution, actor: string): Promise<EffectSettled>
  /** A delivery whose copy was in doubt. @throws NOT_UNKNOWN, DELIVERY_NOT_FOUND */
  resolveDelivery(id: string, resolution: DeliveryResolution, actor: string): Promise<OperatorReply>
  /** Every sweep and how its last run went. */
  sweeps(): Promise<SweepView[]>
  /**
   * Conservation, and every disagreement between rows, indexes and counts; changes nothing. Over the record it tells how
   * far it has come, in rows looked at of about so many; over HTTP nobody tells.
   */
  audit(onProgress?: (done: number, total: number) => void): Promise<AuditView>
  /** Every tunable as it works now, and fields of the configuration that are none. */
  configuration(): Promise<SettingView[]>
  /** Changes tunables for every process at once: all of them, or none. @throws INVALID_ARGUMENT */
  configure(changes: Readonly<Record<string, number | string>>, actor: string): Promise<void>
  /** Who may speak over HTTP, and who might once. */
  principals(): Promise<PrincipalView[]>
  /** One principal. @throws PRINCIPAL_NOT_FOUND */
  principal(name: string): Promise<PrincipalView>
  /** Lets someone speak over HTTP, from now on. @throws PRINCIPAL_EXISTS, INVALID_ARGUMENT */
  addPrincipal(principal: PrincipalInput, actor: string): Promise<PrincipalAdded>
  /** Ends a principal at once and for good, live connections included. @throws PRINCIPAL_NOT_FOUND */
  revokePrincipal(name: string, options: ActOptions): Promise<void>
  /** Ends the connections; nothing is asked of it afterwards. */
  close(): Promise<void>
}
