import { z } from 'zod'
import { type Calls, type HubAddress, openCalls } from '../../client/calls.js'
import { ExchangeFailure } from '../../client/exchange.js'
import { outcomeText } from '../../client/outcome-text.js'
import { part } from '../../client/paths.js'
import { isErrorCode, isHoldfastError } from '../../contract/errors.js'
import type {
  ClaimedDelivery,
  ClaimReply,
  NodeIdentity,
  ReportItem,
  StepOptions,
  StepResult,
} from '../../contract/steps.js'
import {
  type claimedSchema,
  claimReply,
  heartbeatReply,
  joinReply,
  stepReply,
  type stepResult,
} from '../../contract/wire-nodes.js'
import type { NodeTransport } from '../transport.js'

export type { HubAddress } from '../../client/calls.js'

/** A hub answers a waiting claim by then, so that whatever stands between sees traffic. */
const longestPollMs = 25_000
const answerMs = 10_000
/** Of reports in one call: a batch of the largest results would hold up the hub, or not be taken at all. */
const reportBytesAtMost = 512 * 1024

/**
 * The transport of nodes outside the trust boundary: everything goes through a hub, under a principal that is
 * bound to the node's host. @throws INVALID_ARGUMENT
 */
export function openHttpTransport(address: HubAddress): NodeTransport {
  const calls = openCalls(address)
  const steps = stepsOver(calls)
  const take: NodeTransport['take'] = async (who, items, options) => {
    await steps.mirror(who, items, {})
    const results = await steps.ack(who, items, {})
    const taken = new Set(results.filter(({ ok }) => ok).map(({ id }) => id))
    const begins = items.flatMap(({ id, epoch, grant }) =>
      grant !== undefined && taken.has(id) ? [{ id, epoch, grant }] : [],
    )
    return { results, begun: begins.length === 0 ? [] : await steps.begin(who, begins, options) }
  }
  /** The last answer to a claim, without what it handed out: one that is aborted answers as of then. */
  let last = nothing
  return {
    ...membershipOver(calls),
    ...steps,
    take,
    claim: async (who, request, count, { waitMs, signal, onSent }) => {
      const pollMs = Math.min(waitMs, longestPollMs)
      const { node, incarnation } = who
      const body = { node, incarnation, request, count, waitMs: Math.round(pollMs), payloads: 'base64' }
      try {
        const { value } = await calls.call({
          method: 'POST',
          path: hostPath(who, 'claim'),
          body,
          reply: claimReply,
          deadlineMs: pollMs + answerMs,
          // The signal ends a wait: without one the answer is on its way.
          ...(waitMs > 0 ? { waits: true, signal } : {}),
          onSent,
        })
        const reply = claimReplyOf(value)
        last = { ...reply, ghosts: [], missing: [], deliveries: [] }
        return reply
      } catch (error) {
        // Whatever the hub claimed meanwhile is free again once this node leaves.
        if (signal.aborted && isAbort(error)) return last
        throw error
      }
    },
    close: async () => calls.close(),
  }
}

function hostPath(who: NodeIdentity, verb: string): string {
  return `/v1/hosts/${part(who.host)}/${verb}`
}

function isAbort(error: unknown): boolean {
  return isHoldfastError(error) && error.cause instanceof ExchangeFailure && error.cause.kind === 'aborted'
}

const nothing: ClaimReply = {
  logId: '0-0',
  nowMs: 0,
  more: false,
  streamId: '0-0',
  bellId: '0-0',
  ghosts: [],
  missing: [],
  deliveries: [],
}

function membershipOver(calls: Calls): Pick<NodeTransport, 'join' | 'heartbeat' | 'leave'> {
  const nodePath = (who: NodeIdentity) => hostPath(who, `nodes/${part(who.node)}`)
  return {
    join: async (who, instance, scopes, lastLogId) => {
      const body = { incarnation: who.incarnation, instance, scopes, lastLogId }
      const { value } = await calls.call({ method: 'POST', path: nodePath(who), body, reply: joinReply })
      const { now, logId, config, storeId, generation, badSettings } = value
      return { nowMs: now, logId, storeId, generation, badSettings, ...config }
    },
    heartbeat: async (who, { lastLogId, progressAgeMs, blocking, mirror }) => {
      const body = {
        incarnation: who.incarnation,
        lastLogId,
        progress: Math.max(0, progressAgeMs),
        blocking,
        ...(mirror === undefined ? {} : { mirror }),
      }
      const { value } = await calls.call({ method: 'PUT', path: nodePath(who), body, reply: heartbeatReply })
      const { now, ...rest } = value
      return { nowMs: now, ...rest }
    },
    leave: async (who) => {
      const path = `${nodePath(who)}?incarnation=${who.incarnation}`
      await calls.call({ method: 'DELETE', path, reply: z.undefined() })
    },
  }
}

function stepsOver(calls: Calls): Pick<NodeTransport, 'mirror' | 'ack' | 'refuse' | 'begin' | 'report'> {
  async function step(
    who: NodeIdentity,
    verb: string,
    items: readonly unknown[],
    options: StepOptions = {},
  ): Promise<readonly StepResult[]> {
    const { node, incarnation } = who
    const body = { node, incarnation, items }
    const path = hostPath(who, verb)
    const { value } = await calls.call({
      method: 'POST',
      path,
      body,
      reply: stepReply,
      onSent: options.onSent,
    })
    noteLogId(value, options)
    return value.results.map(stepResultOf)
  }
  const idAndEpoch = ({ id, epoch }: { id: string; epoch: number }) => ({ id, epoch })
  return {
    mirror: (who, items, options) => step(who, 'mirror', items.map(idAndEpoch), options),
    ack: (who, items, options) => step(who, 'ack', items.map(idAndEpoch), options),
    refuse: (who, items) =>
      step(
        who,
        'refuse',
        items.map(({ verdict, reason, ...item }) => ({ ...idAndEpoch(item), verdict, reason })),
      ),
    begin: (who, items, options) =>
      step(
        who,
        'begin',
        items.map(({ grant, idempotent, ...item }) => ({ ...idAndEpoch(item), grant, idempotent })),
        options,
      ),
    report: async (who, items, options) => {
      const results: StepResult[] = []
      for (const body of bodiesOf(items)) results.push(...(await sendReports(calls, who, body, options)))
      return results
    },
  }
}

function noteLogId({ logId }: z.output<typeof stepReply>, { onLogId }: StepOptions): void {
  if (logId !== undefined) onLogId?.(logId)
}

interface WrittenReport {
  readonly item: ReportItem
  readonly text: string
}

/** So many reports to a body that it stays small for the hub; a large one goes alone. */
function bodiesOf(items: readonly ReportItem[]): WrittenReport[][] {
  let body: WrittenReport[] = []
  let bytes = 0
  const bodies = [body]
  for (const item of items) {
    const text = reportText(item)
    const size = Buffer.byteLength(text)
    if (body.length > 0 && bytes + size > reportBytesAtMost) {
      body = []
      bytes = 0
      bodies.push(body)
    }
    body.push({ item, text })
    bytes += size
  }
  return bodies
}

async function sendReports(
  calls: Calls,
  { host, node, incarnation }: NodeIdentity,
  reports: readonly WrittenReport[],
  options: StepOptions,
): Promise<StepResult[]> {
  const head = JSON.stringify({ host, node, incarnation }).slice(0, -1)
  const body = `${head},"reports":[${reports.map(({ text }) => text).join(',')}]}`
  try {
    const path = '/delivery-report'
    const { onSent } = options
    const { value } = await calls.call({ method: 'POST', path, body, reply: stepReply, onSent })
    noteLogId(value, options)
    return value.results.map(stepResultOf)
  } catch (error) {
    // Where it is one report's alone, the node can shorten what a hub does not read.
    const [only, ...others] = reports
    if (only === undefined || others.length > 0 || !isHoldfastError(error, 'BODY_TOO_LARGE')) throw error
    return [{ id: only.item.id, ok: false, code: 'RESULT_TOO_LARGE', detail: error.message }]
  }
}

/** A report as JSON text: the outcome's own JSON stands in it byte for byte. */
function reportText({ id, grant, key, outcome, ended }: ReportItem): string {
  const named = id.includes('/') ? { attempt: id } : { delivery: id }
  const head = JSON.stringify({ ...named, grant, key, ended }).slice(0, -1)
  return `${head},"outcome":${outcomeText(outcome)}}`
}

function claimReplyOf(reply: z.output<typeof claimReply>): ClaimReply {
  const { now, deliveries, ...rest } = reply
  return { ...nothing, ...rest, nowMs: now, deliveries: deliveries.map(claimedOf) }
}

function claimedOf(claimed: z.output<typeof claimedSchema>): ClaimedDelivery {
  const { takeover: _, message, session, ...delivery } = claimed
  const { payload: __, payloadBase64 = '', parent, contentType, ...header } = message
  return {
    ...delivery,
    ...(session === undefined ? {} : { session }),
    message: {
      ...header,
      ...(parent === undefined ? {} : { parent }),
      ...(contentType === undefined ? {} : { contentType }),
    },
    payload: Buffer.from(payloadBase64, 'base64'),
  }
}

function stepResultOf(result: z.output<typeof stepResult>): StepResult {
  const { id, ok, epoch, state, attempt, outcome, replay, code = '', owner, detail } = result
  if (ok && epoch !== undefined && state !== undefined) {
    return {
      id,
      ok,
      epoch,
      state,
      ...(attempt === undefined ? {} : { attempt: Number(attempt.slice(attempt.lastIndexOf('/') + 1)) }),
      ...(outcome === undefined ? {} : { outcome }),
      ...(replay === undefined ? {} : { replayed: replay }),
    }
  }
  return {
    id,
    ok: false,
    code: isErrorCode(code) ? code : 'INTERNAL',
    ...(epoch === undefined ? {} : { epoch }),
    ...(state === undefined ? {} : { state }),
    ...(owner === undefined ? {} : { owner }),
    ...(detail === undefined ? {} : { detail }),
  }
}
