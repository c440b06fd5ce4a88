import type { ErrorCode } from '../../../src/contract/errors.js'
import { disown, fail, fencesOver, hold, nextEpoch, requeue, requeueHeldBy } from './moves.js'
import {
  deliveriesOf,
  done,
  type FenceKind,
  isExecuting,
  isFinished,
  type ModelAnswer,
  type ModelDelivery,
  type ModelHub,
  refusal,
  type Witness,
} from './state.js'

export function setFence(hub: ModelHub, kind: FenceKind, scope: string): void {
  hub.serial += 1
  hub.fences[`${kind}:${scope}`] = { kind, scope, serial: hub.serial, expired: false }
}

export function lift(hub: ModelHub, field: string, witness: Witness): ErrorCode | undefined {
  if (hub.fences[field] === undefined) return 'FENCE_NOT_FOUND'
  delete hub.fences[field]
  requeueHeldBy(hub, [field], witness)
  return undefined
}

/** A release passes the holds that stand now, and starts the counters anew. */
export function release(hub: ModelHub, id: string): ModelAnswer {
  const delivery = hub.deliveries[id]
  if (delivery === undefined) return refusal('DELIVERY_NOT_FOUND')
  if (delivery.state !== 'held') return refusal('NOT_HELD')
  if (hub.hosts[delivery.host]?.retired === true) return refusal('HOST_RETIRED')
  const holds = fencesOver(hub, delivery).filter(({ kind }) => kind === 'hold')
  delivery.passes = Object.fromEntries(holds.map(({ field, serial }) => [field, serial]))
  delivery.takeovers = 0
  delivery.redriveFrom = delivery.attempts.length
  requeue(hub, delivery)
  return done(delivery)
}

export function reject(hub: ModelHub, id: string): ModelAnswer {
  const delivery = hub.deliveries[id]
  if (delivery === undefined) return refusal('DELIVERY_NOT_FOUND')
  if (delivery.state !== 'held') return refusal('NOT_HELD')
  fail(hub, delivery, 'rejected')
  return done(delivery)
}

/** Why an operator may not move it: it runs, it is over, or nobody knows. */
function notMovable(delivery: ModelDelivery): ErrorCode | undefined {
  if (isExecuting(delivery)) return 'EXECUTING'
  if (isFinished(delivery) || delivery.state === 'failed') return 'ALREADY_SETTLED'
  return delivery.state === 'unknown' ? 'WRONG_STATE' : undefined
}

export function holdDelivery(hub: ModelHub, id: string, reason: string): ModelAnswer {
  const delivery = hub.deliveries[id]
  if (delivery === undefined) return refusal('DELIVERY_NOT_FOUND')
  const code = notMovable(delivery)
  if (code !== undefined) return refusal(code)
  hold(hub, delivery, reason)
  return done(delivery)
}

export function cancel(hub: ModelHub, id: string): ModelAnswer {
  const delivery = hub.deliveries[id]
  if (delivery === undefined) return refusal('DELIVERY_NOT_FOUND')
  const code = notMovable(delivery)
  if (code !== undefined) return refusal(code)
  fail(hub, delivery, 'cancelled')
  delivery.epoch = nextEpoch(delivery)
  disown(delivery)
  return done(delivery)
}

/** Nothing is handed out on the host any more: what is idle is held, what runs becomes visible. */
export function retire(hub: ModelHub, host: string): ErrorCode | undefined {
  const known = hub.hosts[host]
  if (known === undefined) return 'HOST_NOT_FOUND'
  known.retired = true
  for (const delivery of deliveriesOf(hub, host)) {
    if (isExecuting(delivery)) hub.unknown[`${delivery.id}/${delivery.attempts.length}`] = true
    else if (
      !isFinished(delivery) &&
      ['queued', 'claimed', 'mirrored', 'delivered'].includes(delivery.state)
    ) {
      hold(hub, delivery, 'retired')
    }
  }
  delete hub.lanes[host]
  return undefined
}
