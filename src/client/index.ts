/** A hub over HTTP, from the other side: for producers and operators. */

export type { DeliveryView, MessageView } from '../contract/delivery-views.js'
export type { EffectCalls } from '../contract/effects.js'
export { type ErrorCode, HoldfastError, isHoldfastError } from '../contract/errors.js'
export type { EventsOptions, HubEvent } from '../contract/events.js'
export type {
  Accepted,
  ActOptions,
  BulkFilter,
  BulkOptions,
  FenceOptions,
  HubCalls,
  LogPageOptions,
  MessageFilter,
  Payload,
} from '../contract/hub.js'
export { hubNames, hubOf, qualifiedId } from '../contract/hub-set.js'
export type { LogFilter } from '../contract/log-filter.js'
export type { MessageInput, Recipient } from '../contract/message.js'
export { notSent, type ProbeAnswer, terminal } from '../contract/outcomes.js'
export type { MessageHead, Overview } from '../contract/overview.js'
export { type HashOptions, hashPayload } from '../contract/payload-hash.js'
export type { LogEvent } from '../contract/wire-log.js'
export type { HubAddress } from './calls.js'
export {
  createEffects,
  type EffectAttempt,
  type EffectOutcome,
  type EffectRequest,
  type Effects,
  type EffectsOptions,
} from './effects.js'
export type { ExchangerTls } from './exchange.js'
export { type Client, type ClientOptions, openClient } from './open-client.js'
