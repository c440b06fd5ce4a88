import type { OutcomeKind } from '../../../src/contract/outcomes.js'
import type { NodeIdentity } from '../../../src/contract/steps.js'
import { fail, fenceOver, giveUpAsUnknown, hold, requeue } from './moves.js'
import { nodeOf } from './nodes.js'
import {
  done,
  isExecuting,
  isFinished,
  isIdle,
  type ModelAnswer,
  type ModelAttempt,
  type ModelDelivery,
  type ModelHub,
  refusal,
} from './state.js'

/** A node's steps on one delivery (contract sections 3 and 4). The caller's process has been checked. */

interface Item {
  readonly id: string
  readonly epoch: number
}

/** Compare-and-set on owner and epoch. */
function notTheirs(delivery: ModelDelivery, who: NodeIdentity, epoch: number) {
  if (delivery.host !== who.host) return 'NOT_OWNER'
  if (delivery.epoch !== epoch) return 'STALE_EPOCH'
  if (delivery.owner !== who.node || delivery.incarnation !== who.incarnation) return 'NOT_OWNER'
  return undefined
}

export function mirror(hub: ModelHub, who: NodeIdentity, item: Item): ModelAnswer {
  const delivery = hub.deliveries[item.id]
  if (delivery === undefined) return refusal('DELIVERY_NOT_FOUND')
  const code = notTheirs(delivery, who, item.epoch)
  if (code !== undefined) return refusal(code, delivery)
  if (delivery.state === 'mirrored' || delivery.state === 'delivered') return done(delivery)
  if (delivery.state !== 'claimed') return refusal('WRONG_STATE', delivery)
  delivery.state = 'mirrored'
  return done(delivery)
}

export function ack(hub: ModelHub, who: NodeIdentity, item: Item, deliveredAt: number): ModelAnswer {
  const delivery = hub.deliveries[item.id]
  if (delivery === undefined) return refusal('DELIVERY_NOT_FOUND')
  const code = notTheirs(delivery, who, item.epoch)
  if (code !== undefined) return refusal(code, delivery)
  if (delivery.state === 'delivered') return done(delivery)
  if (delivery.state !== 'mirrored') return refusal('WRONG_STATE', delivery)
  delivery.state = 'delivered'
  delivery.deliveredAt = deliveredAt
  return done(delivery)
}

export function refuse(
  hub: ModelHub,
  who: NodeIdentity,
  item: Item & { readonly verdict: 'failed' | 'unknown'; readonly reason: string },
): ModelAnswer {
  const { verdict, reason } = item
  const delivery = hub.deliveries[item.id]
  if (delivery === undefined) return refusal('DELIVERY_NOT_FOUND')
  // A repeat: the hold cleared the owner, so the reason and an older epoch tell it.
  const sameNode = delivery.refusedBy === `${who.host}/${who.node}`
  if (
    delivery.state === 'held' &&
    delivery.heldReason === reason &&
    sameNode &&
    delivery.epoch > item.epoch
  ) {
    return done(delivery)
  }
  const code = notTheirs(delivery, who, item.epoch)
  if (code !== undefined) return refusal(code, delivery)
  if (delivery.state === verdict) return done(delivery)
  const beforeHandoff = delivery.state === 'claimed' || delivery.state === 'mirrored'
  if (reason === 'payload_corrupt' && (beforeHandoff || isIdle(delivery))) {
    hold(hub, delivery, reason)
    delivery.refusedBy = `${who.host}/${who.node}`
  } else if (!beforeHandoff) return refusal('WRONG_STATE', delivery)
  else if (verdict === 'failed') fail(hub, delivery, reason)
  else giveUpAsUnknown(hub, delivery)
  return done(delivery)
}

/** The one place that allows execution. */
export function begin(
  hub: ModelHub,
  who: NodeIdentity,
  item: Item & { readonly grant: string },
): ModelAnswer {
  const delivery = hub.deliveries[item.id]
  if (delivery === undefined) return refusal('DELIVERY_NOT_FOUND')
  if (delivery.state === 'held') return refusal('HELD', delivery)
  const code = notTheirs(delivery, who, item.epoch)
  if (code !== undefined) return refusal(code, delivery)
  if (delivery.failedCode === 'blocked') return refusal('BLOCKED', delivery)
  if (delivery.failedCode === 'expired') return refusal('EXPIRED', delivery)
  if (delivery.state !== 'delivered') return refusal('WRONG_STATE', delivery)
  const under = delivery.attempts.findIndex(({ grant }) => grant === item.grant) + 1
  if (under > 0) {
    const same = under === delivery.attempts.length && isExecuting(delivery)
    return same ? { ...done(delivery), attempt: under } : refusal('ALREADY_SETTLED', delivery)
  }
  if (isExecuting(delivery)) return refusal('GRANT_OPEN', delivery)
  if (isFinished(delivery)) return refusal('ALREADY_SETTLED', delivery)
  return open(hub, who, delivery, item.grant)
}

function open(hub: ModelHub, who: NodeIdentity, delivery: ModelDelivery, grant: string): ModelAnswer {
  if (delivery.executeLate) {
    fail(hub, delivery, 'expired')
    return refusal('EXPIRED', delivery)
  }
  const fence = fenceOver(hub, delivery)
  if (fence?.kind === 'block') {
    fail(hub, delivery, 'blocked')
    return refusal('BLOCKED', delivery)
  }
  if (fence?.kind === 'hold') {
    hold(hub, delivery, 'fence', fence.field)
    return refusal('HELD', delivery)
  }
  if (fence !== undefined) return refusal('PAUSED', delivery)
  delete delivery.passes
  delivery.attempts.push({
    grant,
    node: `${who.host}/${who.node}`,
    incarnation: who.incarnation,
    status: 'executing',
    unknownKeys: {},
    lateKeys: {},
    late: 0,
  })
  return { ...done(delivery), attempt: delivery.attempts.length }
}

export interface ModelReport {
  /** An attempt, or the delivery where the node never learned the number. */
  readonly id: string
  readonly grant: string
  readonly key: string
  readonly kind: OutcomeKind
  /** What it says besides its kind, as one text. */
  readonly content: string
}

const saidBy = ({ kind, content }: ModelReport) => `${kind} ${content}`

export function report(hub: ModelHub, who: NodeIdentity, item: ModelReport): ModelAnswer {
  const [id = '', named] = item.id.split('/')
  const delivery = hub.deliveries[id]
  if (delivery === undefined) return refusal('DELIVERY_NOT_FOUND')
  const number =
    named === undefined ? delivery.attempts.findIndex(({ grant }) => grant === item.grant) + 1 : Number(named)
  if (named === undefined && number === 0) return refusal('NOT_BEGUN', delivery)
  const attempt = delivery.attempts[number - 1]
  if (attempt === undefined) return refusal('ATTEMPT_NOT_FOUND', delivery)
  if (attempt.grant !== item.grant || attempt.node !== `${who.host}/${who.node}`) {
    return refusal('NOT_OWNER', delivery)
  }
  const known = repeated(delivery, attempt, number, item)
  if (known !== undefined) return known
  if (attempt.status !== 'executing') {
    attempt.late += 1
    attempt.lateKeys[item.key] = saidBy(item)
    hub.lateReports += 1
    return refusal('ALREADY_SETTLED', delivery)
  }
  if (item.kind === 'outcome_unknown') {
    hub.unknown[`${delivery.id}/${number}`] = true
    attempt.unknownKeys[item.key] = saidBy(item)
    return { ...done(delivery), attempt: number, outcome: item.kind }
  }
  settle(hub, who, delivery, attempt, item)
  return { ...done(delivery), attempt: number, outcome: item.kind }
}

/** The recorded answer to a key that was used before; undefined for a new one. */
function repeated(
  delivery: ModelDelivery,
  attempt: ModelAttempt,
  number: number,
  item: ModelReport,
): ModelAnswer | undefined {
  const { settledBy, unknownKeys, lateKeys } = attempt
  const first = settledBy?.key === item.key ? settledBy.content : unknownKeys[item.key]
  const content = first ?? lateKeys[item.key]
  if (content === undefined) return undefined
  if (content !== saidBy(item)) return refusal('IDEMPOTENCY_MISMATCH', delivery)
  if (first === undefined) return refusal('ALREADY_SETTLED', delivery)
  return { ...done(delivery), attempt: number, outcome: item.kind, replayed: true }
}

const statusOf = { result: 'done', terminal: 'terminal', not_sent: 'not_sent' } as const

function settle(
  hub: ModelHub,
  who: NodeIdentity,
  delivery: ModelDelivery,
  attempt: ModelAttempt,
  item: ModelReport,
): void {
  if (item.kind === 'outcome_unknown') return
  attempt.status = statusOf[item.kind]
  attempt.outcome = item.kind
  attempt.settledBy = { key: item.key, content: saidBy(item) }
  delivery.takeovers = 0
  delete hub.unknown[`${delivery.id}/${delivery.attempts.length}`]
  if (item.kind !== 'not_sent') return
  const node = nodeOf(hub, who)
  const ownerLives =
    delivery.owner === who.node &&
    delivery.incarnation === who.incarnation &&
    node?.incarnation === who.incarnation &&
    !node.left &&
    hub.hosts[delivery.host]?.retired !== true
  if (delivery.attempts.length - delivery.redriveFrom >= hub.settings.maxRedrive) {
    hold(hub, delivery, 'redrive_exhausted')
  } else if (!ownerLives) requeue(hub, delivery)
}
