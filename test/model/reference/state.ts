import type { ErrorCode } from '../../../src/contract/errors.js'
import type { AttemptStatus, OutcomeKind } from '../../../src/contract/outcomes.js'
import type { DeliveryState } from '../../../src/contract/states.js'
import type { ClaimedHow } from '../../../src/contract/steps.js'

/** One try at executing a delivery. */
export interface ModelAttempt {
  readonly grant: string
  /** `<host>/<node>` of the process that was allowed to execute. */
  readonly node: string
  readonly incarnation: number
  status: AttemptStatus
  outcome?: OutcomeKind
  /** Key and content of the report that settled it. */
  settledBy?: { readonly key: string; readonly content: string }
  /** Keys of unknown reports and of late ones, with their content. */
  readonly unknownKeys: Record<string, string>
  readonly lateKeys: Record<string, string>
  late: number
}

export interface ModelDelivery {
  readonly id: string
  readonly message: string
  readonly host: string
  readonly session?: string
  readonly conversation: string
  state: DeliveryState
  epoch: number
  owner?: string
  incarnation?: number
  /** Its place in the host's queue: grows with every queueing. */
  place: number
  parked: boolean
  takeovers: number
  heldReason?: string
  heldFence?: string
  failedCode?: string
  readonly attempts: ModelAttempt[]
  /** Attempts that were made before the last release count no more against max_redrive. */
  redriveFrom: number
  /** The holds that stood when it was released, by field, with the setting that stood. */
  passes?: Readonly<Record<string, number>>
  /** Whether its deadlines have passed. */
  deliverLate: boolean
  executeLate: boolean
  /** From then on deliverBy counts no more. */
  claimedOnce?: true
  /** The node whose refuse put it into the held queue. */
  refusedBy?: string
  /** When the handoff was acknowledged, by the record's clock: recovery goes oldest first. */
  deliveredAt?: number
}

export interface ModelNode {
  readonly host: string
  readonly id: string
  incarnation: number
  instance: string
  left: boolean
  /** Not heard for `stale_after_ms`. */
  stale: boolean
  /** Set while what its earlier processes owned is not all resumed. */
  resume?: true
  /** Those of its incarnations that left cleanly. */
  leftCleanly: readonly number[]
  request: number
  answer: readonly ModelGranted[]
}

export interface ModelGranted {
  readonly id: string
  readonly epoch: number
  readonly how: ClaimedHow
}

export interface ModelMessage {
  readonly id: string
  readonly key: string
  readonly fingerprint: string
  readonly conversation: string
  readonly recipients: readonly string[]
  readonly deliverLate: boolean
  readonly executeLate: boolean
  made: number
}

export interface ModelFence {
  readonly kind: FenceKind
  readonly scope: string
  /** Tells one setting of a fence from a later one. */
  readonly serial: number
  /** Written through a function, or by hand. */
  expired: boolean
}

export type FenceKind = 'pause' | 'hold' | 'block'

/** The parked deliveries of one lane. `since`: when its first one parked, by the record's clock. */
export interface ModelLane {
  readonly since: number
  readonly ids: string[]
}

export interface ModelSettings {
  readonly inlineFanOut: number
  readonly maxRedrive: number
  readonly maxTakeovers: number
}

/** One hub's record as the contract demands it. */
export interface ModelHub {
  readonly settings: ModelSettings
  /** Where each session lives. */
  readonly sessions: Readonly<Record<string, string>>
  readonly hosts: Record<string, { retired: boolean }>
  readonly nodes: Record<string, ModelNode>
  readonly messages: Record<string, ModelMessage>
  readonly keys: Record<string, string>
  readonly deliveries: Record<string, ModelDelivery>
  /** Parked lanes by host, then by `<conversation>/<session>`. */
  readonly lanes: Record<string, Record<string, ModelLane>>
  readonly fences: Record<string, ModelFence>
  /** Attempts and deliveries of which nobody knows. */
  readonly unknown: Record<string, true>
  lateReports: number
  serial: number
}

/**
 * What the model takes from the record because the contract leaves it to the record's clock or ids: it
 * never takes a decision from there.
 */
export interface Witness {
  /** The id minted for an accepted message. */
  readonly minted?: string
  /** A number that orders the stream entries of one host. */
  entryOf(delivery: string): string
  /** When the record wrote `delivered_at` or `parked_at`. */
  timeOf(delivery: string, field: 'delivered_at' | 'parked_at'): number
}

/** The answer to one item, or to a call as a whole. */
export type ModelAnswer =
  | {
      readonly ok: true
      readonly epoch?: number
      readonly state?: DeliveryState
      readonly attempt?: number
      readonly outcome?: OutcomeKind
      readonly replayed?: true
    }
  | {
      readonly ok: false
      readonly code: ErrorCode
      readonly epoch?: number
      readonly state?: DeliveryState
      readonly owner?: string
    }

export function emptyHub(settings: ModelSettings, sessions: Readonly<Record<string, string>>): ModelHub {
  return {
    settings,
    sessions,
    hosts: {},
    nodes: {},
    messages: {},
    keys: {},
    deliveries: {},
    lanes: {},
    fences: {},
    unknown: {},
    lateReports: 0,
    serial: 0,
  }
}

function lastAttempt(delivery: ModelDelivery): ModelAttempt | undefined {
  return delivery.attempts.at(-1)
}

export function isExecuting(delivery: ModelDelivery): boolean {
  return lastAttempt(delivery)?.status === 'executing'
}

export function isFinished(delivery: ModelDelivery): boolean {
  const status = lastAttempt(delivery)?.status
  return status === 'done' || status === 'terminal'
}

/** `delivered` with no attempt open and none that finished it. */
export function isIdle(delivery: ModelDelivery): boolean {
  return delivery.state === 'delivered' && !isExecuting(delivery) && !isFinished(delivery)
}

export function laneOf(delivery: ModelDelivery): string {
  return `${delivery.conversation}/${delivery.session ?? ''}`
}

export function deliveriesOf(hub: ModelHub, host: string): ModelDelivery[] {
  return Object.values(hub.deliveries)
    .filter((delivery) => delivery.host === host)
    .sort((one, other) => one.place - other.place)
}

export function refusal(code: ErrorCode, delivery?: ModelDelivery): ModelAnswer {
  if (delivery === undefined) return { ok: false, code }
  const { epoch, state, owner } = delivery
  return { ok: false, code, epoch, state, ...(owner === undefined ? {} : { owner }) }
}

export function done(delivery: ModelDelivery): Extract<ModelAnswer, { ok: true }> {
  return { ok: true, epoch: delivery.epoch, state: delivery.state }
}
