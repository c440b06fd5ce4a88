import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { createClient } from '@hey-api/openapi-ts'
import { Validator } from '@seriousme/openapi-schema-validator'
import Fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { isErrorCode } from '../../src/contract/errors.js'
import { claimReply } from '../../src/contract/wire-nodes.js'
import { defaultLimits } from '../../src/http/limits.js'
import { openApiDocument } from '../../src/http/openapi.js'
import type { JsonSchema, OpenApiDocument, Operation } from '../../src/http/openapi-document.js'
import { answerMeanings, requestMeanings } from '../../src/http/openapi-meanings.js'
import { type AllParts, addRoutes } from '../../src/http/routes/index.js'
import type { App } from '../../src/http/routes/parts.js'
import { call, openStream, startHubServer, type TestHubServer } from '../support/http.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// What the hub says of itself: the document is whole and true, and a client that is generated from nothing else
// speaks with the hub.

/** Every operation by its id, which generated clients name their functions by: an id never changes. */
const operationIds = {
  acceptMessage: 'POST /v1/messages',
  getMessage: 'GET /v1/messages/{id}',
  listMessages: 'GET /v1/messages',
  getPayload: 'GET /v1/messages/{id}/payload',
  resendMessage: 'POST /v1/messages/{id}/resend',
  listDeliveries: 'GET /v1/deliveries',
  getDelivery: 'GET /v1/deliveries/{id}',
  whyDelivery: 'GET /v1/deliveries/{id}/why',
  releaseDelivery: 'POST /v1/deliveries/{id}/release',
  rejectDelivery: 'POST /v1/deliveries/{id}/reject',
  holdDelivery: 'POST /v1/deliveries/{id}/hold',
  cancelDelivery: 'POST /v1/deliveries/{id}/cancel',
  releaseDeliveries: 'POST /v1/deliveries/release',
  rejectDeliveries: 'POST /v1/deliveries/reject',
  holdDeliveries: 'POST /v1/deliveries/hold',
  cancelDeliveries: 'POST /v1/deliveries/cancel',
  listHeld: 'GET /v1/held',
  listUnknown: 'GET /v1/unknown',
  listFences: 'GET /v1/fences',
  setFence: 'PUT /v1/fences/{kind}/{scope}',
  liftFence: 'DELETE /v1/fences/{kind}/{scope}',
  listHosts: 'GET /v1/hosts',
  getHost: 'GET /v1/hosts/{host}',
  listPending: 'GET /v1/hosts/{host}/pending',
  drainHost: 'POST /v1/hosts/{host}/drain',
  retireHost: 'POST /v1/hosts/{host}/retire',
  getCounts: 'GET /v1/counts',
  getOverview: 'GET /v1/overview',
  getHistory: 'GET /v1/history',
  getConfiguration: 'GET /v1/config',
  configure: 'PUT /v1/config',
  listPrincipals: 'GET /v1/principals',
  getPrincipal: 'GET /v1/principals/{name}',
  addPrincipal: 'POST /v1/principals',
  revokePrincipal: 'POST /v1/principals/{name}/revoke',
  join: 'POST /v1/hosts/{host}/nodes/{node}',
  heartbeat: 'PUT /v1/hosts/{host}/nodes/{node}',
  leave: 'DELETE /v1/hosts/{host}/nodes/{node}',
  claim: 'POST /v1/hosts/{host}/claim',
  mirror: 'POST /v1/hosts/{host}/mirror',
  ack: 'POST /v1/hosts/{host}/ack',
  refuse: 'POST /v1/hosts/{host}/refuse',
  begin: 'POST /v1/hosts/{host}/begin',
  report: 'POST /delivery-report',
  listEffects: 'GET /v1/effects',
  getEffect: 'GET /v1/effects/{id}',
  claimEffect: 'POST /v1/effects/{id}/claim',
  takeOverEffect: 'POST /v1/effects/{id}/take-over',
  settleEffect: 'POST /v1/effects/{id}/settle',
  resolveEffect: 'POST /v1/effects/{id}/resolve',
  listSessions: 'GET /v1/sessions',
  getSession: 'GET /v1/sessions/{id}',
  openSession: 'PUT /v1/sessions/{id}',
  closeSession: 'POST /v1/sessions/{id}/close',
  rehomeSession: 'POST /v1/sessions/{id}/rehome',
  resolveAttempt: 'POST /v1/attempts/{id}/resolve',
  resolveDelivery: 'POST /v1/deliveries/{id}/resolve',
  listSweeps: 'GET /v1/sweeps',
  runSweep: 'POST /v1/sweeps/{name}/run',
  getAudit: 'GET /v1/audit',
  listLog: 'GET /v1/log',
  streamEvents: 'GET /v1/events',
  getMe: 'GET /v1/me',
  login: 'POST /v1/login',
  logout: 'POST /v1/logout',
  getLiveness: 'GET /livez',
  getReadiness: 'GET /readyz',
  getMetrics: 'GET /metrics',
  getOpenApi: 'GET /openapi.json',
}

let store: TestServer
let record: OpenRecord
let hub: TestHubServer
let document: OpenApiDocument

beforeAll(async () => {
  store = await startTestServer()
  record = await openRecord(store)
  hub = await startHubServer(record)
  document = (await call<OpenApiDocument>(hub.url, { path: '/openapi.json' })).json
})
afterAll(async () => {
  await hub?.close()
  await record?.close()
  await store?.stop()
})

function operations(): [name: string, operation: Operation][] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Operation] => [
      `${method.toUpperCase()} ${path}`,
      operation,
    ]),
  )
}

function operation(id: string): Operation {
  const found = operations().find(([, { operationId }]) => operationId === id)
  if (found === undefined) throw new Error(`no operation ${id}`)
  return found[1]
}

function resolved(schema: JsonSchema | undefined): JsonSchema {
  const name = schema?.$ref?.replace('#/components/schemas/', '')
  return name === undefined ? (schema ?? {}) : (document.components.schemas[name] ?? {})
}

function bodyOf(id: string): JsonSchema {
  return resolved(operation(id).requestBody?.content['application/json']?.schema)
}

function answerOf(id: string, status = '200'): JsonSchema {
  return resolved(operation(id).responses[status]?.content?.['application/json']?.schema)
}

/** Every object schema in a schema and in all that it names. */
function objectsIn(schema: JsonSchema, place: string, seen = new Set<string>()): [string, JsonSchema][] {
  if (schema.$ref !== undefined) {
    if (seen.has(schema.$ref)) return []
    seen.add(schema.$ref)
  }
  const { type, properties = {}, items, anyOf = [], oneOf = [], ...rest } = resolved(schema)
  const inner = [
    ...Object.entries(properties),
    ...[...(items === undefined ? [] : [items]), ...anyOf, ...oneOf].map((each) => ['', each] as const),
  ]
  return [
    ...(type === 'object' ? [[place, { properties, ...rest }] as [string, JsonSchema]] : []),
    ...inner.flatMap(([name, each]) => objectsIn(each, name === '' ? place : `${place}.${name}`, seen)),
  ]
}

describe('the document', () => {
  test('is OpenAPI 3.1', async () => {
    const validator = new Validator()
    const { valid, errors } = await validator.validate(
      structuredClone(document) as unknown as Record<string, unknown>,
    )
    expect(errors, JSON.stringify(errors)).toBeUndefined()
    expect([valid, validator.version]).toEqual([true, '3.1'])
  })

  test('is the same without a hub', async () => {
    expect(JSON.parse(JSON.stringify(await openApiDocument()))).toEqual(document)
  })

  test('has names of its own, and leaves those of the program around it alone', async () => {
    const theirs = z.object({ mine: z.string() }).meta({ id: 'Session' })
    try {
      expect(JSON.parse(JSON.stringify(await openApiDocument()))).toEqual(document)
      expect(Object.keys(z.toJSONSchema(z.globalRegistry).schemas)).toEqual(['Session'])
    } finally {
      z.globalRegistry.remove(theirs)
    }
  })

  test('holds every schema that it names, and no other', () => {
    const text = JSON.stringify(document)
    const named = [...text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name)
    expect([...new Set(named)].sort()).toEqual(Object.keys(document.components.schemas))
    expect(text.match(/"\$ref":"(?!#\/components\/schemas\/)/)).toBeNull()
  })

  test('holds every route of the server, and no other', async () => {
    const routes: string[] = []
    const app = Fastify()
    app.addHook('onRoute', ({ method, url, schema }) => {
      for (const each of [method].flat()) {
        if (each !== 'HEAD' && schema?.hide !== true) {
          routes.push(`${each} ${url.replace(/:(\w+)/g, '{$1}')}`)
        }
      }
    })
    const parts = { hub: {}, functions: {}, beats: {}, limits: defaultLimits } as unknown as AllParts
    await app.register(async (scope) => addRoutes(scope as unknown as App, parts))
    expect(
      operations()
        .map(([name]) => name)
        .sort(),
    ).toEqual(routes.sort())
  })

  test('names every operation for good', () => {
    const found = operations().map(([name, { operationId }]) => [operationId, name])
    expect(Object.fromEntries(found)).toEqual(operationIds)
    expect(found).toHaveLength(Object.keys(operationIds).length)
  })
})

describe('every operation', () => {
  test('has a summary and a tag that is described', () => {
    const tags = new Set(document.tags.map(({ name }) => name))
    for (const [name, { summary, tags: own }] of operations()) {
      expect(summary, name).toMatch(/^[A-Z`].{8,}/)
      expect(own, name).toHaveLength(1)
      expect(tags, name).toContain(own[0])
    }
    for (const { name, description } of document.tags) expect(description, name).toMatch(/\w+ \w+/)
  })

  test('says who may', () => {
    expect(document['security']).toEqual([{ token: [] }, { cookie: [] }, { certificate: [] }])
    for (const [name, each] of operations()) {
      const open = /^GET \/(livez|readyz|openapi\.json)$|^POST \/v1\/log(in|out)$/.test(name)
      expect(each.security, name).toEqual(open ? [] : undefined)
      if (open) expect(each['x-roles'], name).toEqual([])
      else expect(each['x-roles'], name).toContain('operator')
    }
  })

  test('describes every part of its path, its query and its headers', () => {
    for (const [name, { parameters = [] }] of operations()) {
      const parts = [...name.matchAll(/\{(\w+)\}/g)].map(([, part]) => part)
      const inPath = parameters.filter((parameter) => parameter.in === 'path')
      expect(inPath.map((parameter) => parameter.name).sort(), name).toEqual(parts.sort())
      for (const parameter of parameters) {
        expect(parameter.description, `${name}: ${parameter.name}`).toMatch(/\w/)
        if (parameter.in === 'path') expect(parameter.required).toBe(true)
      }
    }
  })

  test('describes what it takes: whole, explained, and closed to members that nobody knows', () => {
    for (const [name, { requestBody }] of operations()) {
      expect(requestBody !== undefined, name).toBe(/^(POST|PUT) /.test(name))
      const schema = requestBody?.content['application/json']?.schema
      if (schema === undefined) continue
      const objects = objectsIn(schema, name)
      expect(objects.length, name).toBeGreaterThan(0)
      for (const [place, { properties = {}, additionalProperties }] of objects) {
        if (name !== 'PUT /v1/config') expect(additionalProperties, place).toBe(false)
        for (const [member, each] of Object.entries(properties)) {
          expect(each.description, `${place}.${member}`).toMatch(/\w/)
        }
      }
    }
  })

  test('describes what it answers: whole, explained, and open to members of a later version', () => {
    for (const [name, { responses }] of operations()) {
      const good = Object.entries(responses).filter(([status]) => /^2\d\d$/.test(status))
      expect(good.length, name).toBeGreaterThan(0)
      for (const [status, { description, content = {} }] of Object.entries(responses)) {
        expect(description, `${name} ${status}`).not.toBe('Default Response')
        const [type, ...others] = Object.keys(content)
        expect(others).toEqual([])
        expect(type === undefined, `${name} ${status}`).toBe(status === '204')
        for (const { schema } of Object.values(content)) {
          for (const [place, each] of objectsIn(schema, `${name} ${status}`)) {
            expect(each['additionalProperties'], place).not.toBe(false)
            for (const [member, { description }] of Object.entries(each.properties ?? {})) {
              expect(description, `${place}.${member}`).toMatch(/\w/)
            }
          }
        }
      }
    }
  })

  test('answers problems as application/problem+json', () => {
    for (const [name, { responses, security }] of operations()) {
      if (security?.length === 0) continue
      for (const status of ['4XX', '5XX']) {
        expect(responses[status], name).toMatchObject({
          content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
          headers: { 'Retry-After': { schema: { type: 'integer' } } },
        })
      }
    }
  })
})

test('no meaning is written for a member that is gone', () => {
  const text = JSON.stringify(document)
  const words = [...Object.entries(requestMeanings), ...Object.entries(answerMeanings)]
  const unused = words.filter(([, meaning]) => !text.includes(JSON.stringify(meaning).slice(1, -1)))
  expect(unused).toEqual([])
})

describe('single operations', () => {
  test('the key of a message is a header, and a repeat is told from the first time', () => {
    const withKey = operations().filter(([, { parameters = [] }]) =>
      parameters.some(({ name }) => name === 'Idempotency-Key'),
    )
    expect(withKey.map(([, { operationId }]) => operationId).sort()).toEqual([
      'acceptMessage',
      'resendMessage',
    ])
    for (const [, { parameters, responses }] of withKey) {
      expect(parameters).toContainEqual(
        expect.objectContaining({ name: 'Idempotency-Key', in: 'header', required: true }),
      )
      expect(responses['200']).toHaveProperty('headers.Idempotency-Replayed')
      expect(responses['201']).not.toHaveProperty('headers')
    }
  })

  test('raw members are any value', () => {
    const any = { description: expect.any(String) }
    expect(bodyOf('acceptMessage').properties?.['payload']).toEqual(any)
    const outcome = bodyOf('report').properties?.['reports']?.items?.properties?.['outcome']
    const byKind = Object.fromEntries(
      (outcome?.oneOf ?? []).map(({ properties }) => [properties?.['kind']?.['const'], properties]),
    )
    expect(byKind).toMatchObject({
      result: { result: any },
      terminal: { errorJson: any },
      not_sent: { errorJson: any },
      outcome_unknown: { errorJson: any },
    })
    expect(byKind['result']?.['result']).toEqual(any)
    expect(byKind['terminal']?.['errorJson']).toEqual(any)
    const claimed = answerOf('claim').properties?.['deliveries']?.items?.properties?.['message']
    expect(claimed?.properties?.['payload']).toEqual(any)
  })

  test('a body that may be left out is not required', () => {
    const optional = operations().filter(([, { requestBody }]) => requestBody?.required === false)
    const ids = optional.map(([, { operationId }]) => operationId).sort()
    expect(ids).toEqual(['drainHost', 'logout', 'resendMessage', 'runSweep'])
  })

  test('numbers of a query are numbers', () => {
    const wait = operation('getMessage').parameters?.find(({ name }) => name === 'waitMs')
    expect(wait?.schema).toEqual({ type: 'integer', minimum: 0, maximum: 60_000 })
  })

  test('what is made is 201, what has no body is 204', () => {
    const statuses = (id: string) => Object.keys(operation(id).responses)
    expect(statuses('acceptMessage')).toEqual(['200', '201', '4XX', '5XX'])
    expect(statuses('resendMessage')).toEqual(['200', '201', '4XX', '5XX'])
    expect(statuses('addPrincipal')).toEqual(['201', '4XX', '5XX'])
    expect(statuses('leave')).toEqual(['204', '4XX', '5XX'])
    expect(statuses('getReadiness')).toEqual(['200', '503'])
  })
})

test('answers are of the kinds that the document says', async () => {
  const kind = (id: string, status = '200') => Object.keys(operation(id).responses[status]?.content ?? {})[0]
  const given = async (path: string) => (await call(hub.url, { path })).headers.get('content-type')
  expect(await given('/livez')).toContain(kind('getLiveness'))
  expect(await given('/readyz')).toContain(kind('getReadiness'))
  expect(await given('/metrics')).toContain(kind('getMetrics'))
  expect(await given('/openapi.json')).toContain(kind('getOpenApi'))
  expect(await given('/v1/messages/1-0')).toBe(kind('getMessage', '4XX'))
  const events = await fetch(`${hub.url}/v1/events`, { headers: { accept: 'text/event-stream' } })
  expect(events.headers.get('content-type')).toContain(kind('streamEvents'))
  await events.body?.cancel()
  const resumed = await openStream(hub.url, { path: '/v1/events', headers: { 'last-event-id': '0-0' } })
  expect(resumed.status).toBe(200)
  await resumed.close()
})

/** Written against the generated client alone, and compiled with it. Lines marked so must not compile. */
const program = `
import { createClient } from './client/client/index.js'
import * as sdk from './client/sdk.gen.js'
import type { NewPrincipal, Problem } from './client/types.gen.js'

export async function run(baseUrl: string) {
  const local = createClient({ baseUrl })
  const as = (token: string | undefined) => createClient({ baseUrl, auth: (scheme) => scheme.scheme === 'bearer' ? token : undefined })
  const add = async (by: typeof local, body: NewPrincipal) => {
    const { data } = await sdk.addPrincipal({ client: by, body, throwOnError: true })
    return as(data.token)
  }
  const operator = await add(local, { name: 'kim', role: 'operator' })
  const producer = await add(operator, { name: 'billing', role: 'producer' })
  const node = await add(operator, { name: 'build-1', role: 'node', host: 'build-1' })

  const message = { conversation: 'c42', to: [{ host: 'build-1' }], payload: { amount: 12 } }
  const headers = { 'Idempotency-Key': 'order-17' }
  const first = await sdk.acceptMessage({ client: producer, headers, body: message })
  const again = await sdk.acceptMessage({ client: producer, headers, body: message })
  const accepted = must(first)
  // @ts-expect-error the key is required
  sdk.acceptMessage({ client: producer, body: message }).catch(() => undefined)

  const path = { host: 'build-1' }
  const who = { node: 'n1', incarnation: 1 }
  const joined = must(await sdk.join({ client: node, path: { ...path, node: 'n1' }, body: { incarnation: 1, instance: 'i1' } }))
  const claimed = must(await sdk.claim({ client: node, path, body: { ...who, request: 1, count: 10, waitMs: 5000 } }))
  const items = claimed.deliveries.map(({ id, epoch }) => ({ id, epoch }))
  const mirrored = must(await sdk.mirror({ client: node, path, body: { ...who, items } }))
  const acked = must(await sdk.ack({ client: node, path, body: { ...who, items } }))
  const begun = must(await sdk.begin({ client: node, path, body: { ...who, items: items.map((item) => ({ ...item, grant: 'g1' })) } }))
  const attempt = begun.results[0]?.attempt ?? ''
  const reported = must(await sdk.report({
    client: node,
    body: { host: 'build-1', ...who, reports: [{ attempt, grant: 'g1', key: 'r1', outcome: { kind: 'result', result: { paid: true } } }] },
  }))
  await sdk.report({
    client: node,
    // @ts-expect-error no such outcome
    body: { host: 'build-1', ...who, reports: [{ attempt, grant: 'g1', key: 'r2', outcome: { kind: 'done' } }] },
  })
  const seen = must(await sdk.getMessage({ client: producer, path: { id: accepted.id }, query: { waitMs: 5000 } }))
  const left = await sdk.leave({ client: node, path: { ...path, node: 'n1' }, query: { incarnation: 1 } })

  const missing = await sdk.getMessage({ client: producer, path: { id: '1-0' } })
  const problem: Problem | undefined = missing.error
  const forbidden = await sdk.listPrincipals({ client: producer })
  const refused = await sdk.setFence({
    client: operator,
    path: { kind: 'pause', scope: 'conversation:c42' },
    // @ts-expect-error a reason is required
    body: {},
  })
  const alive = await sdk.getLiveness({ client: as(undefined) })
  const events = await sdk.streamEvents({ client: operator, headers: { 'Last-Event-ID': '0-0' } })
  const verbs: string[] = []
  for await (const event of events.stream) {
    if ('verb' in event) verbs.push(event.verb)
    if (verbs.at(-1) === 'leave') break
  }
  return {
    statuses: [first.response.status, again.response.status, again.response.headers.get('idempotency-replayed'), left.response.status],
    accepted, joined, claimed, mirrored, acked, begun, reported, seen, verbs,
    problem, forbidden: forbidden.error?.code, refused: refused.error?.errors, alive: alive.data,
  }
}

function must<Data>({ data, error }: { data?: Data; error?: unknown }): Data {
  if (data === undefined) throw new Error(JSON.stringify(error))
  return data
}
`

describe('a client that is generated from the document', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-generated-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('compiles, and takes a message from accept to its outcome', async () => {
    await createClient({
      input: structuredClone(document) as object,
      output: { path: join(folder, 'client'), module: { extension: '.js' } },
      plugins: ['@hey-api/typescript', '@hey-api/sdk', '@hey-api/client-fetch'],
      logs: { level: 'silent', file: false },
    })
    writeFileSync(join(folder, 'program.ts'), program)
    await compile(folder)

    const built = pathToFileURL(join(folder, 'built', 'program.js')).href
    const { run } = (await import(built)) as { run(baseUrl: string): Promise<Ran> }
    const ran = await run(hub.url)
    expect(ran.statuses).toEqual([201, 200, 'true', 204])
    const [delivery] = ran.accepted.deliveries
    expect(ran.accepted).toMatchObject({ fanOut: 'complete', deliveries: [{ host: 'build-1' }] })
    expect(ran.joined).toMatchObject({ storeId: `store-${record.name}` })
    expect(claimReply.parse(ran.claimed).deliveries).toMatchObject([
      { id: delivery?.id, state: 'claimed', message: { sender: 'billing', payload: { amount: 12 } } },
    ])
    expect(ran.mirrored.results).toMatchObject([{ ok: true, state: 'mirrored' }])
    expect(ran.acked.results).toMatchObject([{ ok: true, state: 'delivered' }])
    expect(ran.begun.results).toMatchObject([{ ok: true, attempt: `${delivery?.id}/1` }])
    expect(ran.reported.results).toMatchObject([{ ok: true, outcome: 'result' }])
    expect(ran.seen).toMatchObject({
      settledAt: expect.any(Number),
      deliveries: [{ attempts: [{ status: 'done', outcome: 'result', result: '{"paid":true}' }] }],
    })
    expect(ran.problem).toMatchObject({ status: 404, code: 'MESSAGE_NOT_FOUND', next: expect.any(String) })
    expect(isErrorCode(ran.problem.code)).toBe(true)
    expect(ran.forbidden).toBe('FORBIDDEN')
    expect(ran.refused).toMatchObject([{ pointer: '#/reason' }])
    expect(ran.alive).toBe('ok\n')
    expect(ran.verbs).toEqual(expect.arrayContaining(['accept', 'claim', 'mirror', 'ack', 'begin', 'report']))
    await record.checkInvariants()
  })
})

/** What the program answers, as far as it is looked into here; the program itself is checked by the compiler. */
interface Ran {
  readonly statuses: readonly unknown[]
  readonly accepted: { readonly deliveries: readonly { readonly id: string }[] }
  readonly joined: object
  readonly claimed: object
  readonly mirrored: { readonly results: readonly object[] }
  readonly acked: { readonly results: readonly object[] }
  readonly begun: { readonly results: readonly object[] }
  readonly reported: { readonly results: readonly object[] }
  readonly seen: object
  readonly verbs: readonly string[]
  readonly problem: { readonly code: string }
  readonly forbidden: string
  readonly refused: readonly object[]
  readonly alive: unknown
}

/** Checks the types and makes JavaScript of it, with the compiler of this repository. */
async function compile(folder: string): Promise<void> {
  const compilerOptions = {
    target: 'es2022',
    skipLibCheck: true,
    lib: ['es2024', 'dom', 'dom.iterable', 'dom.asynciterable'],
    module: 'nodenext',
    types: [],
    strict: true,
    noEmitOnError: true,
    rootDir: '.',
    outDir: 'built',
  }
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, include: ['client', 'program.ts'] }),
  )
  const compiler = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url))
  const ended = promisify(execFile)(process.execPath, [compiler, '-p', folder])
  await ended.catch(({ stdout, stderr }: { stdout: string; stderr: string }) => {
    throw new Error(`it does not compile:\n${stdout}${stderr}`)
  })
}
