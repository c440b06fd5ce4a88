import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { ErrorCode, HoldfastError } from '../contract/errors.js'
import { type JsonSource, jsonPointer, parseJsonSource } from '../contract/json-source.js'
import { mostItems } from '../contract/wire-parts.js'
import type { Limits } from './limits.js'
import { problem } from './problem.js'
import type { App } from './routes/parts.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The JSON body as it was sent; undefined where there is none. */
    source: JsonSource | undefined
  }
  interface FastifyContextConfig {
    /** A tighter bound than `bodyLimit`, where settings of the record decide. */
    payloadLimit?: () => BodyLimit
    /** The longest list in a body, where it is not `mostItems`. */
    listLimit?: () => ListLimit
  }
}

/** The largest body of a route, and how a larger one is refused. */
export interface BodyLimit {
  readonly bytes: number
  readonly refusal: () => HoldfastError
}

/** How long a list may be, and the code by which a longer one is refused. */
export interface ListLimit {
  readonly most: number
  readonly code: ErrorCode
}

/** Reads JSON bodies without losing their source text; refuses what JSON.parse lets through silently. */
export function addJsonBodies(app: App, { arrivingBytes }: Limits): void {
  /** Of all bodies that are not complete yet. */
  let arriving = 0

  /** @throws BODY_TOO_LARGE and the like, OVERLOADED, INVALID_ARGUMENT where the client goes away */
  function read(body: IncomingMessage, { bytes: most, refusal }: BodyLimit): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let bytes = 0

      function onData(chunk: Buffer): void {
        bytes += chunk.length
        arriving += chunk.length
        chunks.push(chunk)
        if (bytes > most) refuse(refusal())
        else if (arriving > arrivingBytes) refuse(problem('OVERLOADED', 'too many bodies arrive at this hub'))
      }
      function onEnd(): void {
        stop()
        resolve(Buffer.concat(chunks, bytes))
      }
      function onGone(): void {
        refuse(problem('INVALID_ARGUMENT', 'the body was cut'))
      }
      function refuse(error: HoldfastError): void {
        stop()
        body.resume() // what still comes is dropped, so that the client reads the answer
        reject(error)
      }
      function stop(): void {
        arriving -= bytes
        body.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone)
      }
      body.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone)
    })
  }

  app.decorateRequest('source', undefined)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', async (request: FastifyRequest, body: IncomingMessage) => {
    const limit = limitOf(request)
    checkHeaders(request, limit)
    const bytes = await read(body, limit)
    if (bytes.length === 0) return undefined
    request.source = parseJsonSource(bytes)
    const { value } = request.source
    checkMembers(value, request.routeOptions.config.listLimit?.())
    return value
  })
}

function limitOf({ routeOptions: { bodyLimit, config } }: FastifyRequest): BodyLimit {
  const fixed = {
    bytes: bodyLimit,
    refusal: () => problem('BODY_TOO_LARGE', `the body is over ${bodyLimit} bytes`),
  }
  const tight = config.payloadLimit?.()
  return tight !== undefined && tight.bytes < fixed.bytes ? tight : fixed
}

/** What can be refused before a byte of the body is read. @throws UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE and the like */
function checkHeaders({ headers, mediaType = '' }: FastifyRequest, { bytes, refusal }: BodyLimit): void {
  const type = headers['content-type'] ?? mediaType
  const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(type)?.[1]
  if (charset !== undefined && charset.toLowerCase() !== 'utf-8') {
    throw problem('UNSUPPORTED_MEDIA_TYPE', 'JSON is sent as UTF-8')
  }
  const coding = headers['content-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'identity') {
    throw problem('UNSUPPORTED_MEDIA_TYPE', 'a body with a Content-Encoding is not taken')
  }
  if (Number(headers['content-length'] ?? 0) > bytes) throw refusal()
}

/** A schema looks at everything: half a million wrong elements would stop this process for half a minute. */
function checkMembers(body: unknown, limit: ListLimit = { most: mostItems, code: 'INVALID_ARGUMENT' }): void {
  if (typeof body !== 'object' || body === null) return
  const members = Object.entries(body)
  // Schemas of lists of names pass over it.
  if (Object.hasOwn(body, '__proto__')) {
    throw problem('INVALID_ARGUMENT', '#/__proto__ is no member of this body', { pointer: '#/__proto__' })
  }
  if (members.length > mostItems) {
    throw problem('INVALID_ARGUMENT', `# has ${members.length} members, the most is ${mostItems}`, {
      pointer: '#',
    })
  }
  for (const [name, value] of members) {
    if (name === payloadMember || !Array.isArray(value) || value.length <= limit.most) continue
    const pointer = `#${jsonPointer([name.slice(0, 100)])}`
    throw problem(limit.code, `${pointer} has ${value.length} elements, the most is ${limit.most}`, {
      pointer,
    })
  }
}

/** It is opaque, so that no schema looks into it. */
const payloadMember = 'payload'
