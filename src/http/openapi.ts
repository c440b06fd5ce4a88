import { readFileSync } from 'node:fs'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod'
import type { App } from './routes/parts.js'

/** `/openapi.json` and `/docs`, made from the same schemas that check requests. */
export async function addOpenApi(app: App): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Holdfast',
        description: 'A durable delivery broker. Errors are `application/problem+json` with a `code`.',
        version: ownVersion(),
        license: { name: 'MIT', identifier: 'MIT' },
      },
      components: {
        securitySchemes: {
          token: { type: 'http', scheme: 'bearer' },
        },
      },
      security: [{ token: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject: jsonSchemaTransformObject,
  })
  await app.register(swaggerUi, { routePrefix: '/docs', staticCSP: true })
}

function ownVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return String((JSON.parse(text) as { version: string }).version)
}
