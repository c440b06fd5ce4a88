import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import Fastify from 'fastify'
import {
  createJsonSchemaTransform,
  createJsonSchemaTransformObject,
  serializerCompiler,
  validatorCompiler,
} from 'fastify-type-provider-zod'
import { toJSONSchema, z } from 'zod'
import { components } from '../contract/components.js'
import { cookieName } from './browsers.js'
import { defaultLimits } from './limits.js'
import { type OpenApiDocument, tidied } from './openapi-document.js'
import { type AllParts, addRoutes } from './routes/index.js'
import type { App } from './routes/parts.js'
import { ownVersion } from './version.js'

/**
 * `/openapi.json` and `/docs`, made from the same schemas that check requests. `below` is the path under which the
 * hub is reached, where that is not the root.
 */
export async function addOpenApi(app: App, below: string | undefined): Promise<void> {
  await addDocument(app, below)
  await app.register(async (scope) => {
    // A page is opened before anybody says who they are; this one shows no more than /openapi.json.
    scope.addHook('onRoute', (route) => {
      route.config = { ...route.config, access: 'public' }
    })
    await scope.register(swaggerUi, {
      routePrefix: '/docs',
      ...(below === undefined ? {} : { indexPrefix: below }),
      staticCSP: true,
      // All that it loads comes from this server: over plain HTTP there is nothing to upgrade to.
      transformStaticCSP: (header) => header.replace('upgrade-insecure-requests;', '').trim(),
    })
  })
}

/** The document that a hub of this version serves, made without one: for pages and tests. */
export async function openApiDocument(): Promise<OpenApiDocument> {
  const app = Fastify({ routerOptions: { maxParamLength: 2000 } }) as unknown as App
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(serializerCompiler)
  await addDocument(app)
  // No handler is ever called: routes need their parts by name only.
  const parts = { hub: {}, functions: {}, beats: {}, limits: defaultLimits } as unknown as AllParts
  await app.register(async (scope) => addRoutes(scope as unknown as App, parts))
  await app.ready()
  const document = app.swagger() as unknown as OpenApiDocument
  await app.close()
  return document
}

async function addDocument(app: App, below?: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Holdfast',
        description: 'A durable delivery broker. Errors are `application/problem+json` with a `code`.',
        version: ownVersion(),
        license: { name: 'MIT', identifier: 'MIT' },
      },
      ...(below === undefined ? {} : { servers: [{ url: below }] }),
      tags: tags.map(([name, description]) => ({ name, description })),
    },
    transform: (given) => {
      const made = transform(given)
      const { access = [] } = given.route.config ?? {}
      if (made.schema?.hide === true) return made
      const open = access === 'public'
      const schema = { ...made.schema, 'x-roles': open ? [] : [...access, 'operator'] }
      return { url: made.url, schema: open ? { ...schema, security: [] } : schema }
    },
    transformObject: (given) => {
      // The plugin types every version of OpenAPI at once; this one is 3.1.
      const made = transformObject(given) as unknown as OpenApiDocument
      const security = Object.keys(securitySchemes).map((name) => ({ [name]: [] }))
      const document = { ...made, components: { ...made.components, securitySchemes }, security }
      return tidied(document) as unknown as ReturnType<typeof transformObject>
    },
  })
}

/** One of them is enough. */
const securitySchemes = {
  token: { type: 'http', scheme: 'bearer', description: 'The token of a principal' },
  cookie: {
    type: 'apiKey',
    in: 'cookie',
    name: cookieName,
    description:
      'The token of a principal, as `login` sets it; with it `Holdfast-Page: 1` where something is changed',
  },
  certificate: { type: 'mutualTLS', description: 'The client certificate that a principal pins' },
}

const tags: readonly (readonly [name: string, description: string])[] = [
  ['messages', 'What producers do: hand in a message, see what became of it, send it again'],
  ['deliveries', 'What became of each recipient, and what operators do about those that wait for someone'],
  ['effects', 'Non-idempotent actions outside deliveries, each at most once'],
  ['sessions', 'Addressable targets on hosts: opened, closed, and moved to another host'],
  ['fences', 'Rules that claims and begins obey: pauses, holds and blocks'],
  ['hosts', 'Hosts, their nodes and what waits for them'],
  ['administration', 'Tunables and principals'],
  ['sweeps', 'What puts a hub right without being asked, and the audit that compares everything'],
  ['nodes', 'What a node says of itself and of the deliveries of its host'],
  ['events', 'The log, as it grows'],
  ['identity', 'Who speaks, and how a browser says so'],
  ['health', 'What watches a hub'],
]

type ZodToJsonConfig = NonNullable<Parameters<typeof createJsonSchemaTransform>[0]['zodToJsonConfig']>

const zodToJsonConfig: ZodToJsonConfig = { override: plain }
const transform = createJsonSchemaTransform({ schemaRegistry: components, zodToJsonConfig })
const transformObject = createJsonSchemaTransformObject({ schemaRegistry: components, zodToJsonConfig })

/** Says of a schema what a reader needs, where Zod says more or less than that. */
function plain({ zodSchema, jsonSchema }: Parameters<NonNullable<ZodToJsonConfig['override']>>[0]): void {
  // Names are in a registry of their own; what a schema means stands where Zod keeps it.
  Object.assign(jsonSchema, z.globalRegistry.get(zodSchema))
  const { def } = zodSchema._zod
  // An answer may gain members: a client that refuses unknown ones would break.
  if (def.type === 'object' && def.catchall === undefined) delete jsonSchema.additionalProperties
  // A number in a query is text that is read as a number.
  if (def.type === 'pipe' && def.out._zod.def.type === 'number') {
    for (const name of Object.keys(jsonSchema)) delete jsonSchema[name]
    Object.assign(jsonSchema, toJSONSchema(def.out as z.ZodType))
    delete jsonSchema.$schema
  }
  // Names of members are text.
  const { propertyNames: named } = jsonSchema
  if (typeof named === 'object' && Object.keys(named).join() === 'type') delete jsonSchema.propertyNames
  // What the format says already.
  if (jsonSchema.format !== undefined) delete jsonSchema.pattern
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}
