import type { ErrorCode } from '../../../src/contract/errors.js'
import type { BeginItem, NodeIdentity, RefuseItem, StepItem } from '../../../src/contract/steps.js'
import { type AcceptAnswer, accept, fanOut, type ModelAccept } from './accept.js'
import { type ClaimAnswer, claim, type ModelClaimCall } from './claim.js'
import { gate, heartbeat, join, leave, nodeOf, reportGate } from './nodes.js'
import { cancel, holdDelivery, lift, reject, release, retire, setFence } from './operator.js'
import type { FenceKind, ModelAnswer, ModelHub, Witness } from './state.js'
import { ack, begin, type ModelReport, mirror, refuse, report } from './steps.js'

/** One call on the record, as callers make it. */
export type ModelCall =
  | ({ readonly verb: 'accept' } & ModelAccept)
  | { readonly verb: 'fan_out'; readonly message: string; readonly chunk: number }
  | { readonly verb: 'join'; readonly who: NodeIdentity; readonly instance: string }
  | { readonly verb: 'heartbeat' | 'leave'; readonly who: NodeIdentity }
  | ({ readonly verb: 'claim'; readonly who: NodeIdentity } & ModelClaimCall)
  | { readonly verb: 'mirror' | 'ack'; readonly who: NodeIdentity; readonly items: readonly StepItem[] }
  | { readonly verb: 'refuse'; readonly who: NodeIdentity; readonly items: readonly RefuseItem[] }
  | { readonly verb: 'begin'; readonly who: NodeIdentity; readonly items: readonly BeginItem[] }
  | { readonly verb: 'report'; readonly who: NodeIdentity; readonly items: readonly ModelReport[] }
  | { readonly verb: FenceKind; readonly scope: string }
  | { readonly verb: 'lift'; readonly kind: FenceKind; readonly scope: string }
  | { readonly verb: 'release' | 'reject' | 'cancel'; readonly id: string }
  | { readonly verb: 'hold_delivery'; readonly id: string; readonly reason: string }
  | { readonly verb: 'retire'; readonly host: string }
  | PassingOfTime

/** What happens to a record besides calls: time passes, and operators write fences by hand. */
export type PassingOfTime =
  | { readonly verb: 'go_stale'; readonly host: string; readonly node: string }
  | { readonly verb: 'pass_deadline'; readonly id: string; readonly which: 'deliver_by' | 'execute_by' }
  | { readonly verb: 'expire_fence' | 'delete_fence'; readonly field: string }

export type CallAnswer =
  | { readonly kind: 'refused'; readonly code: ErrorCode }
  | { readonly kind: 'items'; readonly items: readonly ModelAnswer[] }
  | { readonly kind: 'claim'; readonly claim: Extract<ClaimAnswer, { ok: true }> }
  | { readonly kind: 'made'; readonly made: Extract<AcceptAnswer, { ok: true }> }
  | { readonly kind: 'done' }

/**
 * The reference model of one hub's record: what a call must be answered, and the record after it (contract
 * sections 3, 4, 5, 7 and 8). Pure: `hub` is left as it is.
 */
export function apply(
  hub: ModelHub,
  call: ModelCall,
  witness: Witness,
): { readonly hub: ModelHub; readonly answer: CallAnswer } {
  const next = structuredClone(hub)
  return { hub: next, answer: carryOut(next, call, witness) }
}

function carryOut(hub: ModelHub, call: ModelCall, witness: Witness): CallAnswer {
  switch (call.verb) {
    case 'accept':
      return madeOr(accept(hub, call, witness))
    case 'fan_out':
      return madeOr(fanOut(hub, call.message, call.chunk))
    case 'join':
      return doneOr(join(hub, call.who, call.instance))
    case 'heartbeat':
      return doneOr(heartbeat(hub, call.who))
    case 'leave':
      return doneOr(leave(hub, call.who))
    case 'claim': {
      const answer = claim(hub, call.who, call, witness)
      return answer.ok ? { kind: 'claim', claim: answer } : { kind: 'refused', code: answer.code }
    }
    case 'mirror':
    case 'ack':
    case 'refuse':
    case 'begin':
      return itemsOr(gate(hub, call.who), () => nodeSteps(hub, call, witness))
    case 'report':
      return itemsOr(reportGate(hub, call.who), () => call.items.map((item) => report(hub, call.who, item)))
    case 'pause':
    case 'hold':
    case 'block':
      setFence(hub, call.verb, call.scope)
      return { kind: 'done' }
    case 'lift':
      return doneOr(lift(hub, `${call.kind}:${call.scope}`, witness))
    case 'release':
      return operated(release(hub, call.id))
    case 'reject':
      return operated(reject(hub, call.id))
    case 'cancel':
      return operated(cancel(hub, call.id))
    case 'hold_delivery':
      return operated(holdDelivery(hub, call.id, call.reason))
    case 'retire':
      return doneOr(retire(hub, call.host))
    default:
      pass(hub, call)
      return { kind: 'done' }
  }
}

function nodeSteps(
  hub: ModelHub,
  call: Extract<ModelCall, { verb: 'mirror' | 'ack' | 'refuse' | 'begin' }>,
  witness: Witness,
): ModelAnswer[] {
  const { who } = call
  switch (call.verb) {
    case 'mirror':
      return call.items.map((item) => mirror(hub, who, item))
    case 'ack':
      return call.items.map((item) => ack(hub, who, item, witness.timeOf(item.id, 'delivered_at')))
    case 'refuse':
      return call.items.map((item) => refuse(hub, who, item))
    case 'begin':
      return call.items.map((item) => begin(hub, who, item))
  }
}

function pass(hub: ModelHub, event: PassingOfTime): void {
  switch (event.verb) {
    case 'go_stale': {
      const node = nodeOf(hub, { host: event.host, node: event.node, incarnation: 0 })
      if (node !== undefined) node.stale = true
      return
    }
    case 'pass_deadline': {
      const delivery = hub.deliveries[event.id]
      if (delivery === undefined) return
      if (event.which === 'deliver_by') delivery.deliverLate = true
      else delivery.executeLate = true
      return
    }
    case 'expire_fence': {
      const fence = hub.fences[event.field]
      if (fence !== undefined) fence.expired = true
      return
    }
    case 'delete_fence':
      delete hub.fences[event.field]
  }
}

function doneOr(code: ErrorCode | undefined): CallAnswer {
  return code === undefined ? { kind: 'done' } : { kind: 'refused', code }
}

function madeOr(answer: AcceptAnswer): CallAnswer {
  return answer.ok ? { kind: 'made', made: answer } : { kind: 'refused', code: answer.code }
}

function itemsOr(code: ErrorCode | undefined, items: () => ModelAnswer[]): CallAnswer {
  return code === undefined ? { kind: 'items', items: items() } : { kind: 'refused', code }
}

function operated(answer: ModelAnswer): CallAnswer {
  return answer.ok ? { kind: 'items', items: [answer] } : { kind: 'refused', code: answer.code }
}
