import type { AttemptResolved, OperatorReply } from '../contract/delivery-views.js'
import type { DeliveryResolution, Resolution } from '../contract/hub.js'
import type { OutcomeKind } from '../contract/outcomes.js'
import type { SessionReply } from '../contract/session-views.js'
import {
  type SessionClosing,
  type SessionOpening,
  type SessionState,
  sessionScope,
} from '../contract/sessions.js'
import type { CallFunction } from './call-function.js'
import type { Argument } from './connections.js'
import { type Fields, number, optionalText, present, stateOf, text } from './replies.js'

export interface SessionFunctions {
  openSession(id: string, opening: SessionOpening, actor: string): Promise<SessionReply>
  closeSession(id: string, closing: SessionClosing, actor: string): Promise<SessionReply>
  rehome(id: string, host: string, actor: string, reason: string): Promise<SessionReply & { more: boolean }>
  move(id: string, actor: string): Promise<SessionReply & { more: boolean }>
  resolveAttempt(id: string, resolution: Resolution, actor: string): Promise<AttemptResolved>
  resolveDelivery(id: string, resolution: DeliveryResolution, actor: string): Promise<OperatorReply>
  prune(limit: number): Promise<{ messages: number; deliveries: number; effects: number; more: boolean }>
}

/** Typed callers of the functions on sessions, resolutions and retention. */
export function sessionFunctionsOf(call: CallFunction): SessionFunctions {
  const moving = async (verb: string, args: readonly Argument[]) => {
    const reply = await call(verb, args)
    return { ...sessionReplyOf(reply), more: number(reply, 'more') === 1 }
  }
  return {
    openSession: async (id, { host, scope, restartBudget, parent, asOperator }, actor) => {
      const place = [id, host, sessionScope(scope), restartBudget ?? '', parent ?? '']
      const args = [...place, actor, asOperator === true ? 1 : 0]
      return sessionReplyOf(await call('open_session', args))
    },
    closeSession: async (id, { epoch, reason, drained, abandoned, terminal }, actor) => {
      const stated = terminal === undefined ? '' : terminal ? 1 : 0
      const args = [id, epoch, reason, drained ? 1 : 0, abandoned, stated, actor]
      return sessionReplyOf(await call('close_session', args))
    },
    rehome: (id, host, actor, reason) => moving('rehome', [id, host, actor, reason]),
    move: (id, actor) => moving('move', [id, actor]),
    resolveAttempt: async (id, { as, evidence, force, result }, actor) => {
      const args = [id, as, evidence, actor, force === true ? 1 : 0, result ?? '']
      const reply = await call('resolve_attempt', args)
      return {
        id: text(reply, 'id'),
        state: stateOf(text(reply, 'state')),
        epoch: number(reply, 'epoch'),
        outcome: text(reply, 'outcome') as OutcomeKind,
        logId: text(reply, 'log_id'),
      }
    },
    resolveDelivery: async (id, { as, evidence }, actor) => {
      const reply = await call('resolve_delivery', [id, as, evidence, actor])
      return {
        id: text(reply, 'id'),
        state: stateOf(text(reply, 'state')),
        epoch: number(reply, 'epoch'),
        logId: text(reply, 'log_id'),
      }
    },
    prune: async (limit) => {
      const reply = await call('prune', [limit])
      return {
        messages: number(reply, 'messages'),
        deliveries: number(reply, 'deliveries'),
        effects: number(reply, 'effects'),
        more: number(reply, 'more') === 1,
      }
    },
  }
}

function sessionReplyOf(reply: Fields): SessionReply {
  const terminal = optionalText(reply, 'terminal')
  return {
    session: text(reply, 'session'),
    host: text(reply, 'host'),
    scope: text(reply, 'scope'),
    epoch: number(reply, 'epoch'),
    state: text(reply, 'state') as SessionState,
    ...present('terminal', terminal === undefined ? undefined : terminal === '1'),
    ...present('reason', optionalText(reply, 'reason')),
    crashes: number(reply, 'crashes'),
    restartBudget: number(reply, 'restart_budget'),
    logId: text(reply, 'log_id'),
  }
}
