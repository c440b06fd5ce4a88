import { createHash } from 'node:crypto'
import {
  context,
  isSpanContextValid,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import type { Outcome } from '../contract/outcomes.js'
import type { Attempt } from './executor.js'

/**
 * A span around one attempt. Only the OpenTelemetry API is used: without an SDK in the process it does
 * nothing. All attempts of a message share a trace, whose id is made of the message's.
 */
export function inSpan(attempt: Attempt, run: () => Promise<Outcome>): Promise<Outcome> {
  const { message, target } = attempt
  const attributes = {
    'messaging.system': 'holdfast',
    'messaging.operation.type': 'process',
    'messaging.destination.name': attempt.host,
    'messaging.message.id': message.id,
    'messaging.message.conversation_id': message.conversation,
    'holdfast.attempt.id': attempt.id,
    'holdfast.epoch': attempt.epoch,
    'holdfast.hub': attempt.hub,
    'holdfast.node': attempt.node,
    ...(target.session === undefined ? {} : { 'holdfast.session': target.session }),
  }
  const parent = trace.setSpanContext(context.active(), contextOfMessage(message.id))
  const tracer = trace.getTracer('holdfast')
  return tracer.startActiveSpan(
    'holdfast.attempt',
    { kind: SpanKind.CONSUMER, attributes },
    parent,
    async (span) => {
      try {
        const outcome = await run()
        span.setAttribute('holdfast.outcome', outcome.kind)
        if (outcome.kind !== 'result')
          span.setStatus({ code: SpanStatusCode.ERROR, message: outcome.errorCode })
        return outcome
      } finally {
        span.end()
      }
    },
  )
}

/** The active span as a W3C `traceparent`; undefined where nothing in the process records spans. */
export function activeTraceparent(): string | undefined {
  const active = trace.getSpanContext(context.active())
  // What is remote is the message's own context: no span that anybody recorded.
  if (active === undefined || !isSpanContextValid(active) || active.isRemote === true) return undefined
  return traceparent(active)
}

/** A `traceparent` made of the message's id and the attempt's. */
export function ownTraceparent(attempt: Attempt): string {
  return traceparent({ ...contextOfMessage(attempt.message.id), spanId: hex(attempt.id, 8) })
}

function traceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}

function contextOfMessage(id: string): SpanContext {
  return { traceId: hex(id, 16), spanId: hex(id, 8), traceFlags: TraceFlags.SAMPLED, isRemote: true }
}

function hex(text: string, bytes: number): string {
  return createHash('sha256')
    .update(text)
    .digest('hex')
    .slice(0, 2 * bytes)
}
