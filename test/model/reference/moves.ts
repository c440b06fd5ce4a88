import type { DeliveryState } from '../../../src/contract/states.js'
import { laneOf, type ModelDelivery, type ModelFence, type ModelHub, type Witness } from './state.js'

/** How a delivery moves (contract section 3). Callers have checked that it may. */

export function nextEpoch(delivery: ModelDelivery): number {
  return delivery.epoch + 1
}

export function disown(delivery: ModelDelivery): void {
  delete delivery.owner
  delete delivery.incarnation
}

/** A parked delivery that moves leaves its lane at once; so does the lane when that was its last. */
export function leaveLane(hub: ModelHub, delivery: ModelDelivery): void {
  if (!delivery.parked) return
  delivery.parked = false
  const lanes = hub.lanes[delivery.host] ?? {}
  const lane = lanes[laneOf(delivery)]
  if (lane === undefined) return
  lane.ids.splice(lane.ids.indexOf(delivery.id), 1)
  if (lane.ids.length === 0) delete lanes[laneOf(delivery)]
}

function enter(hub: ModelHub, delivery: ModelDelivery, state: DeliveryState): void {
  if (delivery.state === 'unknown') delete hub.unknown[delivery.id]
  leaveLane(hub, delivery)
  delivery.state = state
}

export function hold(hub: ModelHub, delivery: ModelDelivery, reason: string, fence?: string): void {
  enter(hub, delivery, 'held')
  delivery.epoch = nextEpoch(delivery)
  disown(delivery)
  delete delivery.passes
  delete delivery.refusedBy
  delivery.heldReason = reason
  if (fence === undefined) delete delivery.heldFence
  else delivery.heldFence = fence
}

export function fail(hub: ModelHub, delivery: ModelDelivery, code: string): void {
  enter(hub, delivery, 'failed')
  delivery.failedCode = code
}

export function giveUpAsUnknown(hub: ModelHub, delivery: ModelDelivery): void {
  enter(hub, delivery, 'unknown')
  hub.unknown[delivery.id] = true
}

/** To the end of the queue; held where the host is retired, because nobody claims there any more. */
export function requeue(hub: ModelHub, delivery: ModelDelivery): void {
  if (hub.hosts[delivery.host]?.retired === true) {
    hold(hub, delivery, 'retired')
    return
  }
  enter(hub, delivery, 'queued')
  hub.serial += 1
  delivery.place = hub.serial
  delivery.epoch = nextEpoch(delivery)
  disown(delivery)
}

/** Several at once: in the order in which the record wrote their entries. */
function requeueAll(hub: ModelHub, deliveries: readonly ModelDelivery[], witness: Witness): void {
  const entry = new Map(deliveries.map(({ id }) => [id, witness.entryOf(id)]))
  const ordered = deliveries.toSorted((one, other) =>
    (entry.get(one.id) ?? '') < (entry.get(other.id) ?? '') ? -1 : 1,
  )
  for (const delivery of ordered) requeue(hub, delivery)
}

/** What a hold parked, back to the queue once the hold stands no more. */
export function requeueHeldBy(hub: ModelHub, fences: readonly string[], witness: Witness): void {
  const freed = Object.values(hub.deliveries).filter(
    (delivery) =>
      delivery.state === 'held' && delivery.heldFence !== undefined && fences.includes(delivery.heldFence),
  )
  requeueAll(hub, freed, witness)
}

const precedence = ['block', 'hold', 'pause'] as const

function scopesOver(lane: { host: string; conversation: string; session?: string | undefined }): string[] {
  const scopes = ['hub', `host:${lane.host}`, `conversation:${lane.conversation}`]
  if (lane.session !== undefined) scopes.push(`session:${lane.session}`)
  return scopes
}

/** Every standing fence over a lane, the strictest first. */
export function fencesOver(
  hub: ModelHub,
  lane: { host: string; conversation: string; session?: string | undefined },
): (ModelFence & { field: string })[] {
  const found: (ModelFence & { field: string })[] = []
  for (const kind of precedence) {
    for (const scope of scopesOver(lane)) {
      const fence = hub.fences[`${kind}:${scope}`]
      if (fence !== undefined && !fence.expired) found.push({ ...fence, field: `${kind}:${scope}` })
    }
  }
  return found
}

/** The strictest fence that stops this delivery: a released one passes the holds it was released from. */
export function fenceOver(
  hub: ModelHub,
  delivery: ModelDelivery,
): (ModelFence & { field: string }) | undefined {
  return fencesOver(hub, delivery).find(
    ({ kind, field, serial }) => kind !== 'hold' || delivery.passes?.[field] !== serial,
  )
}
