import type { ErrorCode } from '../../../src/contract/errors.js'
import type { DeliveryState } from '../../../src/contract/states.js'
import type { ClaimedHow, NodeIdentity } from '../../../src/contract/steps.js'
import { fail, fenceOver, fencesOver, hold, leaveLane, nextEpoch, requeueHeldBy } from './moves.js'
import { gate, nodeOf } from './nodes.js'
import {
  deliveriesOf,
  isExecuting,
  isFinished,
  laneOf,
  type ModelDelivery,
  type ModelHub,
  type ModelLane,
  type ModelNode,
  type Witness,
} from './state.js'

export interface ModelClaimed {
  readonly id: string
  readonly epoch: number
  readonly state: DeliveryState
  readonly how: ClaimedHow
  readonly attempts: number
}

export interface ModelClaimCall {
  readonly request: number
  readonly count: number
  /** False: lanes are not looked at this time. Work is bounded, and a fence taken away by hand rings no bell. */
  readonly looks?: boolean
  /** An empty answer leaves the request unanswered. */
  readonly openIfEmpty?: boolean
}

export type ClaimAnswer =
  | { readonly ok: true; readonly deliveries: readonly ModelClaimed[] }
  | { readonly ok: false; readonly code: ErrorCode }

interface Claim {
  readonly hub: ModelHub
  readonly node: ModelNode
  readonly count: number
  readonly granted: ModelClaimed[]
  readonly witness: Witness
  full: boolean
}

/** What a node may take on next: the repeated request, its own, un-parked, those of gone nodes, new ones. */
export function claim(hub: ModelHub, who: NodeIdentity, call: ModelClaimCall, witness: Witness): ClaimAnswer {
  const code = gate(hub, who)
  const node = nodeOf(hub, who)
  if (code !== undefined || node === undefined) return { ok: false, code: code ?? 'NOT_JOINED' }
  if (call.request < node.request) return { ok: false, code: 'STALE_REQUEST' }
  if (call.request === node.request) return { ok: true, deliveries: again(hub, node) }

  const current: Claim = { hub, node, count: call.count, granted: [], witness, full: false }
  requeueHeldBy(hub, lapsedHolds(hub), witness)
  serveOwn(current)
  if (call.looks !== false) serveParked(current)
  serveGonePeers(current)
  serveNew(current)
  if (call.openIfEmpty === true && current.granted.length === 0) return { ok: true, deliveries: [] }
  node.request = call.request
  node.answer = current.granted.map(({ id, epoch, how }) => ({ id, epoch, how }))
  return { ok: true, deliveries: current.granted }
}

/** The first answer again: the same deliveries and epochs, their states current. */
function again(hub: ModelHub, node: ModelNode): ModelClaimed[] {
  return node.answer.flatMap((granted) => {
    const delivery = hub.deliveries[granted.id]
    if (delivery === undefined) return []
    return [{ ...granted, state: delivery.state, attempts: delivery.attempts.length }]
  })
}

/** Holds that keep something and stand no more: lifted by hand, or expired. */
function lapsedHolds(hub: ModelHub): string[] {
  const keeping = Object.values(hub.deliveries).flatMap(({ state, heldFence }) =>
    state === 'held' && heldFence !== undefined ? [heldFence] : [],
  )
  return keeping.filter((field) => hub.fences[field]?.expired !== false)
}

function hasRoom(current: Claim): boolean {
  if (current.granted.length >= current.count) current.full = true
  return !current.full
}

function grant(current: Claim, delivery: ModelDelivery, how: ClaimedHow): void {
  const { node } = current
  delivery.epoch = nextEpoch(delivery)
  delivery.owner = node.id
  delivery.incarnation = node.incarnation
  if (how === 'new' || how === 'parked') {
    leaveLane(current.hub, delivery)
    delivery.state = 'claimed'
    delivery.claimedOnce = true
  }
  const { id, epoch, state, attempts } = delivery
  current.granted.push({ id, epoch, state, how, attempts: attempts.length })
}

/**
 * Hands an idle delivery of a gone process to the claiming one. A counted one is handed out alone; at the
 * limit it is held as poison. False when it does not fit any more.
 */
function recover(current: Claim, delivery: ModelDelivery, how: 'resume' | 'takeover'): boolean {
  const crashed = !leftCleanly(current, delivery)
  if (crashed && current.granted.length > 0) current.full = true
  if (!hasRoom(current)) return false
  if (crashed) delivery.takeovers += 1
  if (crashed && delivery.takeovers >= current.hub.settings.maxTakeovers) {
    hold(current.hub, delivery, 'poison')
    return true
  }
  grant(current, delivery, how)
  if (crashed) current.full = true
  return true
}

/** Whether the process that owned it left cleanly: then recovering it does not count. */
function leftCleanly({ hub, node }: Claim, { owner, incarnation }: ModelDelivery): boolean {
  return hub.nodes[`${node.host}/${owner}`]?.leftCleanly.includes(incarnation ?? 0) ?? false
}

type IsGone = (delivery: ModelDelivery) => { how: 'resume' | 'takeover' } | undefined

/** Handed off and unsettled, oldest first: idle ones change hands, open attempts become visible. */
function recoverDelivered(current: Claim, goneOf: IsGone): boolean {
  const found = deliveriesOf(current.hub, current.node.host)
    .filter((delivery) => delivery.state === 'delivered' && !isFinished(delivery))
    .sort((one, other) => {
      const apart = (one.deliveredAt ?? 0) - (other.deliveredAt ?? 0)
      return apart !== 0 ? apart : one.id < other.id ? -1 : 1
    })
  for (const delivery of found) {
    const gone = goneOf(delivery)
    if (gone === undefined) continue
    if (isExecuting(delivery)) current.hub.unknown[`${delivery.id}/${delivery.attempts.length}`] = true
    else if (!recover(current, delivery, gone.how)) return false
  }
  return true
}

/** Claimed and mirrored, in the order of their entries. */
function recoverPending(current: Claim, goneOf: IsGone): boolean {
  for (const delivery of deliveriesOf(current.hub, current.node.host)) {
    if (delivery.state !== 'claimed' && delivery.state !== 'mirrored') continue
    const gone = goneOf(delivery)
    if (gone !== undefined && !recover(current, delivery, gone.how)) return false
  }
  return true
}

function serveOwn(current: Claim): void {
  const { node } = current
  if (node.resume === undefined) return
  const goneOf: IsGone = ({ owner, incarnation }) =>
    owner === node.id && (incarnation ?? 0) < node.incarnation ? { how: 'resume' } : undefined
  if (!recoverDelivered(current, goneOf) || current.full) return
  if (recoverPending(current, goneOf)) delete node.resume
}

function serveGonePeers(current: Claim): void {
  if (current.full) return
  const { hub, node } = current
  const peers = Object.values(hub.nodes).filter(
    (peer) => peer.host === node.host && peer.id !== node.id && (peer.left || peer.stale),
  )
  const goneOf =
    (among: readonly ModelNode[]): IsGone =>
    ({ owner }) => {
      const peer = among.find(({ id }) => id === owner)
      return peer === undefined ? undefined : { how: 'takeover' }
    }
  if (!recoverDelivered(current, goneOf(peers)) || current.full) return
  for (const peer of peers) if (!recoverPending(current, goneOf([peer]))) return
}

function park(current: Claim, delivery: ModelDelivery): void {
  const { hub, witness } = current
  const lanes = hub.lanes[delivery.host] ?? {}
  hub.lanes[delivery.host] = lanes
  const lane = lanes[laneOf(delivery)] ?? { since: witness.timeOf(delivery.id, 'parked_at'), ids: [] }
  lanes[laneOf(delivery)] = lane
  lane.ids.push(delivery.id)
  delivery.parked = true
}

function serveNew(current: Claim): void {
  const { hub, node } = current
  if (current.full) return
  for (const delivery of deliveriesOf(hub, node.host)) {
    if (delivery.state !== 'queued' || delivery.parked) continue
    if (!hasRoom(current)) return
    const fence = fenceOver(hub, delivery)
    if (delivery.deliverLate && !delivery.claimedOnce) fail(hub, delivery, 'expired')
    else if (fence?.kind === 'block') fail(hub, delivery, 'blocked')
    else if (fence?.kind === 'hold') hold(hub, delivery, 'fence', fence.field)
    else if (fence !== undefined || hub.lanes[node.host]?.[laneOf(delivery)] !== undefined) {
      park(current, delivery)
    } else grant(current, delivery, 'new')
  }
}

/** Lanes in which a pause is not the strictest fence, the longest parked first. */
function serveParked(current: Claim): void {
  const { hub, node } = current
  const lanes = hub.lanes[node.host] ?? {}
  const waiting = Object.entries(lanes).sort(([name, one], [other, two]) =>
    one.since !== two.since ? one.since - two.since : name < other ? -1 : 1,
  )
  for (const [name, lane] of waiting) {
    if (current.full) return
    const [conversation = '', session = ''] = name.split('/')
    const over = { host: node.host, conversation, session: session === '' ? undefined : session }
    if (fencesOver(hub, over)[0]?.kind !== 'pause') serveLane(current, lane)
  }
}

/** Every delivery that is served leaves the lane, whatever becomes of it. */
function serveLane(current: Claim, lane: ModelLane): void {
  const { hub } = current
  for (let id = lane.ids[0]; id !== undefined; id = lane.ids[0]) {
    const delivery = hub.deliveries[id]
    if (delivery === undefined) return
    const fence = fenceOver(hub, delivery)
    if (fence?.kind === 'pause') return
    if (fence?.kind === 'block') fail(hub, delivery, 'blocked')
    else if (fence?.kind === 'hold') hold(hub, delivery, 'fence', fence.field)
    else if (delivery.deliverLate && !delivery.claimedOnce) fail(hub, delivery, 'expired')
    else if (hasRoom(current)) grant(current, delivery, 'parked')
    else return
  }
}
