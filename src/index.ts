/** Holdfast: every accepted message is handed to every recipient exactly once. */

export {
  createEffects,
  type EffectAttempt,
  type EffectOutcome,
  type EffectRequest,
  type Effects,
  type EffectsOptions,
  type ThrowInstead,
} from './client/effects.js'
export type {
  AcceptedDelivery,
  AttemptResolved,
  AttemptView,
  BulkReply,
  DeliveryView,
  HeldEntry,
  MessageView,
  OperatorReply,
  TimelineEntry,
  UnknownEntry,
  WhyReply,
} from './contract/delivery-views.js'
export type { EffectView } from './contract/effect-views.js'
export type {
  EffectBasis,
  EffectCalls,
  EffectClaim,
  EffectClaimed,
  EffectRecord,
  EffectRefused,
  EffectSettled,
  EffectSettlement,
  EffectStatus,
  EffectTakeOver,
  EffectUnknown,
} from './contract/effects.js'
export {
  type ErrorCode,
  type ErrorEntry,
  errorCatalogue,
  HoldfastError,
  isHoldfastError,
} from './contract/errors.js'
export type { EventsOptions, HubEvent } from './contract/events.js'
export type {
  FenceReply,
  FenceView,
  HostView,
  LiftReply,
  NodeView,
  PendingEntry,
} from './contract/host-views.js'
export type {
  Accepted,
  ActOptions,
  BulkFilter,
  BulkOptions,
  DeliveryFilter,
  DeliveryPage,
  DeliveryResolution,
  EffectPageOptions,
  FenceOptions,
  HostConcern,
  HostPageOptions,
  HubCalls,
  LiveState,
  LogPageOptions,
  MessageFilter,
  OperatorAct,
  Page,
  PageOptions,
  Payload,
  PrincipalAdded,
  PrincipalInput,
  Resolution,
} from './contract/hub.js'
export { hubNames, hubOf, qualifiedId } from './contract/hub-set.js'
export type { LogFilter } from './contract/log-filter.js'
export type { MessageInput, OutgoingMessage, Recipient } from './contract/message.js'
export {
  type NotSent,
  type NotSentOutcome,
  notSent,
  type Outcome,
  type OutcomeKind,
  type ProbeAnswer,
  type ResultOutcome,
  type Terminal,
  type TerminalOutcome,
  terminal,
  type UnknownOutcome,
} from './contract/outcomes.js'
export type { MessageHead, Overview } from './contract/overview.js'
export { type HashOptions, hashPayload } from './contract/payload-hash.js'
export type { OnPoint, Point } from './contract/points.js'
export type { PrincipalView } from './contract/principal-views.js'
export type { Role } from './contract/principals.js'
export type { RedisAddress, RedisTls } from './contract/redis-address.js'
export type { SessionReply, SessionView } from './contract/session-views.js'
export type { CloseReason, SessionClosing, SessionOpening, SessionState } from './contract/sessions.js'
export { type SettingName, settings } from './contract/settings.js'
export { type DeliveryState, deliveryStates } from './contract/states.js'
export type { ClaimedMessage } from './contract/steps.js'
export type { AuditView, SettingView, SweepView } from './contract/upkeep-views.js'
export type { Event, LogEvent } from './contract/wire-log.js'
export { type Hub, type HubOptions, type InitOptions, initRecord, openHub } from './hub/open-hub.js'
export { type HubSetOptions, openHubSet } from './hub/open-hub-set.js'
export type { Repaired } from './hub/repair.js'
export {
  type ByExecutor,
  type ByFunction,
  createNode,
  type HoldfastNode,
  type NodeBasics,
  type NodeEnd,
  type NodeOptions,
  type OnRedis,
  type OverHttp,
} from './node/create-node.js'
export type {
  Attempt,
  ChildIdentity,
  ExecuteFunction,
  Executor,
  ExecutorHooks,
  ProbeFunction,
  Prober,
} from './node/executor.js'
export type { OnCall } from './record/connections.js'
export { type EmbeddedOptions, type EmbeddedServer, startEmbedded } from './record/embedded.js'
export type { InitReply } from './record/functions.js'
