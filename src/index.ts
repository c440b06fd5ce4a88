/** Holdfast: every accepted message is handed to every recipient exactly once. */

export {
  type ErrorCode,
  type ErrorEntry,
  errorCatalogue,
  HoldfastError,
  isHoldfastError,
} from './contract/errors.js'
export type { MessageInput, Recipient } from './contract/message.js'
export { type NotSent, notSent, type Outcome, type Terminal, terminal } from './contract/outcomes.js'
export { type SettingName, settings } from './contract/settings.js'
export { type DeliveryState, deliveryStates } from './contract/states.js'
export type { Accepted, AcceptedDelivery } from './hub/accept.js'
export type { SettingView } from './hub/configuration.js'
export type { DeliveryFilter, DeliveryPage } from './hub/delivery-pages.js'
export type {
  FenceView,
  HeldEntry,
  HostView,
  NodeView,
  PendingEntry,
  UnknownEntry,
} from './hub/lists.js'
export {
  type ActOptions,
  type FenceOptions,
  type Hub,
  type HubOptions,
  initRecord,
  openHub,
} from './hub/open-hub.js'
export type { Repaired } from './hub/repair.js'
export type { AttemptView, DeliveryView, MessageView, TimelineEntry } from './hub/views.js'
export { createNode, type HoldfastNode, type NodeEnd, type NodeOptions } from './node/create-node.js'
export type { Attempt, ExecuteFunction, Executor } from './node/executor.js'
export { type EmbeddedServer, startEmbedded } from './record/embedded.js'
export type { FenceReply, InitReply, LiftReply, OperatorReply, WhyReply } from './record/functions.js'
