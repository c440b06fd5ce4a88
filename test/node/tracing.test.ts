import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Attributes,
  type Context,
  type ContextManager,
  context,
  ROOT_CONTEXT,
  type Span,
  type SpanOptions,
  type SpanStatus,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Attempt } from '../../src/node/executor.js'
import { activeTraceparent, inSpan, ownTraceparent } from '../../src/node/tracing.js'
import { call, startHubServer } from '../support/http.js'
import { makeRecord } from '../support/record.js'
import { startTestServer } from '../support/server.js'

// What an SDK is told through the OpenTelemetry API: this one keeps what it hears.

interface Told {
  readonly name: string
  readonly parentTrace: string | undefined
  readonly attributes: Attributes
  status: SpanStatus | undefined
  ended: boolean
}

const told: Told[] = []
const spanContext = { traceId: 'ab'.repeat(16), spanId: 'cd'.repeat(8), traceFlags: 1 }

function startSpan(name: string, options: SpanOptions = {}, parent: Context = ROOT_CONTEXT): Span {
  const attributes: Attributes = { ...options.attributes }
  const entry: Told = {
    name,
    parentTrace: trace.getSpanContext(parent)?.traceId,
    attributes,
    status: undefined,
    ended: false,
  }
  told.push(entry)
  const span = {
    spanContext: () => spanContext,
    setAttribute: (key: string, value: string | number) => {
      attributes[key] = value
      return span
    },
    setStatus: (status: SpanStatus) => {
      entry.status = status
      return span
    },
    end: () => {
      entry.ended = true
    },
  } as unknown as Span
  return span
}

const tracer = {
  startSpan,
  startActiveSpan: (name: string, options: SpanOptions, parent: Context, run: (span: Span) => unknown) => {
    const span = startSpan(name, options, parent)
    return context.with(trace.setSpan(parent, span), run, undefined, span)
  },
} as unknown as Tracer

function contextManager(): ContextManager {
  const storage = new AsyncLocalStorage<Context>()
  const manager: ContextManager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (active, run, self, ...args) => storage.run(active, () => run.call(self as never, ...args)),
    bind: (_, target) => target,
    enable: () => manager,
    disable: () => manager,
  }
  return manager
}

beforeAll(() => {
  trace.setGlobalTracerProvider({ getTracer: () => tracer })
  context.setGlobalContextManager(contextManager())
})
beforeEach(() => {
  told.length = 0
})
afterAll(() => {
  trace.disable()
  context.disable()
})

const attempt: Attempt = {
  id: '1-000000.1/1',
  deliveryId: '1-000000.1',
  number: 1,
  replay: false,
  epoch: 3,
  hub: 'hf',
  host: 'a',
  node: 'n1',
  target: { host: 'a', session: 's' },
  message: { id: '1-000000', conversation: 'c', sender: 'me', sha256: '' },
  payload: Buffer.from('secret'),
  signal: new AbortController().signal,
}

it('an attempt is a span in the trace of its message, with its outcome', async () => {
  let during: string | undefined
  await inSpan(attempt, async () => {
    during = activeTraceparent()
    return { kind: 'terminal', errorCode: 'gone' }
  })
  expect(during).toBe(`00-${spanContext.traceId}-${spanContext.spanId}-01`)
  expect(told).toMatchObject([
    {
      name: 'holdfast.attempt',
      parentTrace: ownTraceparent(attempt).split('-')[1],
      attributes: {
        'holdfast.attempt.id': attempt.id,
        'holdfast.epoch': 3,
        'holdfast.session': 's',
        'messaging.message.id': '1-000000',
        'holdfast.outcome': 'terminal',
      },
      status: { code: SpanStatusCode.ERROR, message: 'gone' },
      ended: true,
    },
  ])
  expect(JSON.stringify(told)).not.toContain('secret')
  expect(activeTraceparent()).toBeUndefined()
})

it('every try of a message shares a trace, and has a span of its own', () => {
  const [first, second] = [attempt, { ...attempt, id: '1-000000.1/2' }].map(ownTraceparent)
  expect(first).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
  expect(second?.slice(0, 35)).toBe(first?.slice(0, 35))
  expect(second).not.toBe(first)
})

it('a request to a hub is a span, and so is each function that it calls', async () => {
  const server = await startTestServer()
  const record = await makeRecord(server, 'tracing')
  const hub = await startHubServer(record)
  try {
    told.length = 0
    const body = { conversation: 'c', sender: 'me', to: [{ host: 'a' }], payload: 1 }
    const headers = { 'idempotency-key': 'k' }
    expect((await call(hub.url, { method: 'POST', path: '/v1/messages', body, headers })).status).toBe(201)
    await call(hub.url, { path: '/v1/messages/1-0' })
  } finally {
    await hub.close()
    await record.close()
    await server.stop()
  }
  const named = (name: string) => told.find((each) => each.name === name)
  expect(named('POST /v1/messages')).toMatchObject({
    attributes: { 'http.route': '/v1/messages', 'http.response.status_code': 201 },
    ended: true,
  })
  expect(named('GET /v1/messages/:id')?.attributes).toMatchObject({ 'http.response.status_code': 404 })
  expect(named('hf_accept')).toMatchObject({ status: undefined, ended: true })
})
