import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { App } from './routes/parts.js'

/**
 * A span for each request, under the caller's `traceparent`. Only the OpenTelemetry API is used: without an
 * SDK in the process it does nothing.
 */
export function addTracing(app: App): void {
  const tracer = trace.getTracer('holdfast')
  app.addHook('onRequest', (request, reply, done) => {
    const parent = propagation.extract(context.active(), request.headers)
    const route = request.routeOptions.url ?? 'none'
    const span = tracer.startSpan(
      `${request.method} ${route}`,
      {
        kind: SpanKind.SERVER,
        attributes: {
          'http.request.method': request.method,
          'http.route': route,
          'url.scheme': request.protocol,
        },
      },
      parent,
    )
    reply.raw.once('close', () => {
      span.setAttribute('http.response.status_code', reply.statusCode)
      if (reply.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end()
    })
    context.with(trace.setSpan(parent, span), done)
  })
}
