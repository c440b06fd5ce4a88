import type { Sending } from '../contract/points.js'
import type {
  BeginItem,
  ClaimReply,
  Heartbeat,
  HeartbeatReply,
  JoinReply,
  NodeIdentity,
  RefuseItem,
  ReportItem,
  StepItem,
  StepOptions,
  StepResult,
  TakeItem,
  TakeReply,
} from '../contract/steps.js'
import type { CallFunction } from './call-function.js'
import type { Argument } from './connections.js'
import {
  claimedDeliveryOf,
  type Fields,
  listOf,
  number,
  optionalText,
  stepResultOf,
  text,
  textOf,
} from './replies.js'

/** What a node asks: presence, claims, the steps of its deliveries, in batches answered item by item. */
export interface NodeFunctions {
  join(who: NodeIdentity, instance: string, scopes: readonly string[], lastLogId: string): Promise<JoinReply>
  heartbeat(who: NodeIdentity, beat: Heartbeat): Promise<HeartbeatReply>
  leave(who: NodeIdentity): Promise<void>
  claim(who: NodeIdentity, request: number, count: number, options?: ClaimOptions): Promise<ClaimReply>
  mirror(who: NodeIdentity, items: readonly StepItem[], options?: StepOptions): Promise<readonly StepResult[]>
  ack(who: NodeIdentity, items: readonly StepItem[], options?: StepOptions): Promise<readonly StepResult[]>
  refuse(
    who: NodeIdentity,
    items: readonly RefuseItem[],
    options?: StepOptions,
  ): Promise<readonly StepResult[]>
  begin(who: NodeIdentity, items: readonly BeginItem[], options?: StepOptions): Promise<readonly StepResult[]>
  take(who: NodeIdentity, items: readonly TakeItem[], options?: StepOptions): Promise<TakeReply>
  report(
    who: NodeIdentity,
    items: readonly ReportItem[],
    options?: StepOptions,
  ): Promise<readonly StepResult[]>
}

export interface ClaimOptions extends Sending {
  /** An empty answer leaves the request unanswered: it may be asked again until there is something. */
  readonly openIfEmpty?: boolean | undefined
}

/** Typed callers of the functions of nodes. */
export function nodeFunctionsOf(call: CallFunction): NodeFunctions {
  async function batch(
    verb: string,
    who: NodeIdentity,
    items: readonly (readonly Argument[])[],
    options?: StepOptions,
  ): Promise<readonly StepResult[]> {
    const reply = await call(verb, [...identityOf(who), ...items.flat()], options)
    options?.onLogId?.(text(reply, 'log_id'))
    return listOf(reply, 'results').map(stepResultOf)
  }

  return {
    join: async (who, instance, scopes, lastLogId) =>
      joinReplyOf(await call('join', [...identityOf(who), instance, JSON.stringify(scopes), lastLogId])),
    heartbeat: async (who, beat) => {
      const { progressAgeMs, blocking, mirror } = beat
      const figures = [
        progressAgeMs,
        blocking.sumMs,
        blocking.longestMs,
        mirror?.commits ?? 0,
        mirror?.sumMs ?? 0,
        mirror?.longestMs ?? 0,
      ].map((figure) => Math.max(0, Math.round(figure)))
      return heartbeatReplyOf(await call('heartbeat', [...identityOf(who), beat.lastLogId, ...figures]))
    },
    leave: async (who) => {
      await call('leave', identityOf(who))
    },
    claim: async (who, request, count, options) => {
      const args = [...identityOf(who), request, count, options?.openIfEmpty === true ? 1 : 0]
      return claimReplyOf(await call('claim', args, { ...options, buffers: true }))
    },
    mirror: (who, items, options) => batch('mirror', who, items.map(stepArguments), options),
    ack: (who, items, options) => batch('ack', who, items.map(stepArguments), options),
    refuse: (who, items, options) =>
      batch(
        'refuse',
        who,
        items.map((item) => [item.id, item.epoch, item.verdict, item.reason]),
        options,
      ),
    begin: (who, items, options) =>
      batch(
        'begin',
        who,
        items.map((item) => [item.id, item.epoch, item.grant, item.idempotent === true ? 1 : 0]),
        options,
      ),
    take: async (who, items, options) => {
      const args = items.flatMap((item) => [item.id, item.epoch, item.grant ?? ''])
      const reply = await call('take', [...identityOf(who), ...args], options)
      options?.onLogId?.(text(reply, 'log_id'))
      return {
        results: listOf(reply, 'results').map(stepResultOf),
        begun: listOf(reply, 'begun').map(stepResultOf),
      }
    },
    report: (who, items, options) => batch('report', who, items.map(reportArguments), options),
  }
}

function identityOf(who: NodeIdentity): Argument[] {
  return [who.host, who.node, who.incarnation]
}

function stepArguments(item: StepItem): Argument[] {
  return [item.id, item.epoch]
}

function reportArguments(item: ReportItem): Argument[] {
  const { outcome } = item
  const start = [item.id, item.grant, item.key, outcome.kind]
  const ended = item.ended === true ? 1 : 0
  if (outcome.kind === 'result') return [...start, outcome.result, '', '', ended]
  return [...start, '', outcome.errorCode, outcome.errorJson ?? '', ended]
}

function heartbeatReplyOf(reply: Fields): HeartbeatReply {
  return {
    nowMs: number(reply, 'now'),
    logId: text(reply, 'log_id'),
    heartbeatMs: number(reply, 'heartbeat_ms'),
    staleAfterMs: number(reply, 'stale_after_ms'),
  }
}

function joinReplyOf(reply: Fields): JoinReply {
  return {
    ...heartbeatReplyOf(reply),
    storeId: text(reply, 'store_id'),
    generation: number(reply, 'generation'),
    maxResultBytes: number(reply, 'max_result_bytes'),
    maxRedrive: number(reply, 'max_redrive'),
    badSettings: (optionalText(reply, 'bad_settings') ?? '').split(' ').filter(Boolean),
  }
}

function claimReplyOf(reply: Fields): ClaimReply {
  const nextAtMs = number(reply, 'next_at_ms')
  return {
    logId: text(reply, 'log_id'),
    nowMs: number(reply, 'now'),
    more: number(reply, 'more') === 1,
    again: number(reply, 'again') === 1,
    ...(nextAtMs > 0 ? { nextAtMs } : {}),
    streamId: text(reply, 'stream_id'),
    bellId: text(reply, 'bell_id'),
    ghosts: listOf(reply, 'ghosts').map(textOf),
    missing: listOf(reply, 'missing').map(textOf),
    deliveries: listOf(reply, 'deliveries').map(claimedDeliveryOf),
  }
}
