import { HoldfastError } from '../contract/errors.js'
import { type JsonSource, parseJsonSource } from '../contract/json-source.js'
import type { App } from './routes/parts.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The JSON body as it was sent; undefined where there is none. */
    source: JsonSource | undefined
  }
}

/** Reads JSON bodies without losing their source text; refuses what JSON.parse lets through silently. */
export function addJsonBodies(app: App): void {
  app.decorateRequest('source', undefined)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      if (body.length === 0) return done(null, undefined)
      request.source = parseJsonSource(body)
      done(null, request.source.value)
    } catch (error) {
      done(error instanceof Error ? error : new HoldfastError('INVALID_ARGUMENT', 'the body is no JSON'))
    }
  })
}
