import { readdirSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type HoldfastCaller, type HoldfastOptions, holdfast } from '../../src/fastify.js'
import { call, openStream, speak } from '../support/http.js'
import { openRaw, requestText } from '../support/raw-http.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// A hub within an application that was there before: with routes, parsers and hooks of its own.

let redis: TestServer
const opened: (() => Promise<unknown>)[] = []
let made = 0

beforeAll(async () => {
  redis = await startTestServer()
})
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})
afterAll(() => redis?.stop())

async function makeHub(): Promise<TestRecord> {
  made += 1
  const record = await makeRecord(redis, `plugin-${made}`)
  opened.push(() => record.close())
  return record
}

interface Outer {
  readonly app: FastifyInstance
  readonly url: string
  readonly port: number
  /** Where the hub is. */
  readonly below: string
  /** What its hooks saw, in order. */
  readonly seen: string[]
  readonly lines: string[]
}

interface OuterOptions extends Partial<HoldfastOptions> {
  readonly server?: FastifyServerOptions
  readonly prefix?: string
  readonly host?: string
  readonly before?: (app: FastifyInstance) => void
}

/** The application listens on a free port of loopback, with the hub below `/holdfast`. */
async function openOuter(record: TestRecord, options: OuterOptions = {}): Promise<Outer> {
  const { server = {}, prefix = '/holdfast', host = '127.0.0.1', before, ...given } = options
  const seen: string[] = []
  const lines: string[] = []
  const stream = { write: (line: string) => void lines.push(line) }
  const app = Fastify({ ...server, logger: { level: 'trace', stream } })
  opened.push(() => app.close())
  // Its own JSON: numbers in it are text. The hub must get what was sent.
  app.addContentTypeParser('application/json', { parseAs: 'string' }, async (_: unknown, body: string) =>
    JSON.parse(body, (_, value: unknown) => (typeof value === 'number' ? String(value) : value)),
  )
  app.addHook('onRequest', async ({ method, url }, reply) => {
    seen.push(`onRequest ${method} ${url}`)
    reply.header('x-outer', 'yes')
    if (url.startsWith('/holdfast')) reply.header('content-type', 'text/outer')
  })
  app.addHook('preHandler', async ({ url }) => void seen.push(`preHandler ${url}`))
  app.addHook('onResponse', async ({ url }, reply) => void seen.push(`onResponse ${url} ${reply.statusCode}`))
  app.get('/', async () => 'the application')
  app.post('/orders', async ({ body }) => ({ body }))
  app.get('/socket', async ({ socket }) => ({ timeout: socket.timeout ?? 0 }))
  before?.(app)
  app.register(holdfast, {
    prefix,
    redis: record.store.url,
    hub: record.name,
    ...given,
    limits: { lagMs: 0, ...given.limits },
  })
  app.get('/v1/me', async () => 'nobody')
  await app.listen({ host, port: 0 })
  const { port } = app.server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  return { app, url, port, below: `${url}${prefix}`, seen, lines }
}

const message =
  '{"conversation":"c","sender":"s","to":[{"host":"a"}],"payload":{"n":1.50,"n2":12345678901234567890}}'
const accept = (key: string, body = message) => ({
  method: 'POST',
  path: '/v1/messages',
  headers: { 'idempotency-key': key },
  body,
})

describe('below its prefix', () => {
  it('is all that a hub serves, and bodies come to it as they were sent', async () => {
    const record = await makeHub()
    const { below, url } = await openOuter(record)
    const { status, json, headers } = await call<{ id: string }>(below, accept('k'))
    expect(status).toBe(201)
    expect(headers.get('content-type')).toMatch(/^application\/json/)
    expect(await record.send('GET', record.keys.payload(json.id))).toBe(
      '{"n":1.50,"n2":12345678901234567890}',
    )
    for (const path of [
      '/livez',
      '/readyz',
      '/metrics',
      '/openapi.json',
      '/docs',
      '/v1/held?limit=1',
      '/v1/me',
    ]) {
      expect((await call(below, { path })).status, path).toBe(200)
    }
    expect((await call(below, { path: '/v1/nothing?a=1' })).json).toMatchObject({
      status: 404,
      code: 'ROUTE_NOT_FOUND',
      detail: 'no route GET /v1/nothing',
    })
    expect((await call(below, { method: 'PATCH', path: '/v1/held' })).status).toBe(405)
    const conversation = {
      method: 'PUT',
      path: '/v1/fences/pause/conversation%3Aa%2Fb',
      body: { reason: 'r' },
    }
    expect((await call(below, conversation)).json).toMatchObject({ fence: 'pause:conversation:a/b' })
    const page = await call(url, { path: '/holdfast/docs' })
    const parts = [...page.text.matchAll(/(?:href|src)="(\/[^"]+)"/g)].map(([, path = '']) => path)
    expect(parts.length).toBeGreaterThan(3)
    for (const path of parts) expect((await call(url, { path })).status, path).toBe(200)
    const document = await call<{ servers: unknown }>(below, { path: '/openapi.json' })
    expect(document.json.servers).toEqual([{ url: '/holdfast' }])
  })

  it('is the page, to which the prefix alone leads', async () => {
    const { below, url } = await openOuter(await makeHub())
    const built = readdirSync(fileURLToPath(new URL('../../dist/dashboard/assets/', import.meta.url)))
    const { status, text, headers } = await call(below, { path: '/' })
    expect({ status, type: headers.get('content-type') }).toEqual({
      status: 200,
      type: 'text/html; charset=utf-8',
    })
    expect(text).toContain('./assets/')
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    const script = built.find((name) => name.endsWith('.js'))
    expect((await call(below, { path: `/assets/${script}` })).status).toBe(200)
    const alone = await call(url, { path: '/holdfast?a=1' })
    expect({ status: alone.status, location: alone.headers.get('location') }).toEqual({
      status: 307,
      location: './holdfast/?a=1',
    })
    expect((await call(url, { method: 'POST', path: '/holdfast' })).status).toBe(405)
  })

  it('may have parameters in its prefix, stand at the root, and stand twice', async () => {
    const record = await makeHub()
    const other = await makeHub()
    const twice = await openOuter(record, {
      prefix: '/:tenant/hub',
      before: (app) => app.register(holdfast, { prefix: '/other', redis: other.store.url, hub: other.name }),
    })
    const hubOf = async (path: string) => (await call<{ hub: string }>(twice.url, { path })).json.hub
    expect(await hubOf('/acme/hub/v1/me')).toBe(record.name)
    expect(await hubOf('/b%2Fc/hub/v1/me')).toBe(record.name)
    expect(await hubOf('/other/v1/me')).toBe(other.name)
    const root = await openOuter(record, { prefix: '' })
    expect((await call(root.url, { path: '/v1/held' })).status).toBe(200)
    expect((await call(root.url, { path: '/v1/me' })).text).toBe('nobody')
    expect((await call(root.url, { path: '/' })).text).toBe('the application')
  })

  it('is spoken to without a listener too', async () => {
    const { app } = await openOuter(await makeHub())
    const answer = await app.inject({
      method: 'POST',
      url: '/holdfast/v1/messages',
      headers: { 'idempotency-key': 'k', 'content-type': 'application/json' },
      payload: message,
    })
    expect({ status: answer.statusCode, body: answer.json() }).toMatchObject({
      status: 201,
      body: { deliveries: [{ state: 'queued' }] },
    })
  })
})

describe('the application', () => {
  it('keeps its routes, its parser and its errors', async () => {
    const { url } = await openOuter(await makeHub())
    expect((await call(url, { path: '/' })).text).toBe('the application')
    expect((await call(url, { path: '/v1/me' })).text).toBe('nobody')
    const { json, headers } = await call(url, { method: 'POST', path: '/orders', body: { n: 1 } })
    expect(json).toEqual({ body: { n: '1' } })
    expect(headers.get('content-security-policy')).toBeNull()
    expect((await call(url, { path: '/nothing' })).json).toMatchObject({
      error: 'Not Found',
      statusCode: 404,
    })
    expect((await call(url, { method: 'POST', path: '/orders', body: '{' })).status).toBe(500)
  })

  it('has its hooks run for the hub as for its own, with the URL that was asked for', async () => {
    const { url, seen, lines } = await openOuter(await makeHub())
    const { headers } = await call(url, { path: '/holdfast/v1/held?limit=1' })
    expect(headers.get('x-outer')).toBe('yes')
    await until(() => seen.length === 3, { what: 'the last hook' })
    expect(seen).toEqual([
      'onRequest GET /holdfast/v1/held?limit=1',
      'preHandler /holdfast/v1/held?limit=1',
      'onResponse /holdfast/v1/held?limit=1 200',
    ])
    await until(() => lines.some((line) => line.includes('"answered"')), { what: 'the line of the hub' })
  })

  it('refuses by its hooks before the hub is asked', async () => {
    const before = (app: FastifyInstance) =>
      app.addHook('preHandler', async ({ headers }, reply) => {
        if (headers['x-outer-key'] !== 'open') return reply.code(402).send('closed')
      })
    const { below } = await openOuter(await makeHub(), { before })
    expect(await call(below, { path: '/v1/held' })).toMatchObject({ status: 402, text: 'closed' })
    const headers = { 'x-outer-key': 'open' }
    expect((await call(below, { path: '/v1/held', headers })).status).toBe(200)
  })

  it('starts no hub that has no record, none whose Redis is away, and none over HTTP/2', async () => {
    const app = Fastify()
    app.register(holdfast, { prefix: '/holdfast', redis: redis.url, hub: 'never-made' })
    await expect(app.ready()).rejects.toMatchObject({ code: 'STORE_UNKNOWN' })
    await app.close()
    const away = Fastify({ pluginTimeout: 2000 })
    away.register(holdfast, { prefix: '/holdfast', redis: 'redis://127.0.0.1:1' })
    await expect(away.ready()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await away.close()
    const modern = Fastify({ http2: true })
    modern.register(holdfast as never, { prefix: '/holdfast', redis: redis.url })
    await expect(modern.ready()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    await modern.close()
  })
})

describe('what takes long', () => {
  it('events come as they happen', async () => {
    const record = await makeHub()
    const { below } = await openOuter(record)
    const stream = await openStream(below, { path: '/v1/events' })
    expect(stream.status).toBe(200)
    await record.functions.pause('hub', 'seen', 'kim')
    await until(() => stream.text().includes('"seen"'), { what: 'the event' })
    await stream.close()
  })

  it('ends in order with the application', async () => {
    const record = await makeHub()
    await record.join('a', 'n')
    const { app, below } = await openOuter(record)
    const stream = await openStream(below, { path: '/v1/events' })
    const body = { node: 'n', incarnation: 1, request: 1, waitMs: 60_000 }
    const claim = call(below, { method: 'POST', path: '/v1/hosts/a/claim', body })
    const waits = async () =>
      (await call(below, { path: '/metrics' })).text.includes('\nholdfast_http_waiting 2\n')
    await until(waits, { what: 'both waiting' })
    const startedAt = performance.now()
    await app.close()
    expect(performance.now() - startedAt).toBeLessThan(8000)
    expect(await claim).toMatchObject({ status: 200, json: { deliveries: [] } })
    await stream.ended
    await until(async () => !String(await record.send('CLIENT', 'LIST')).includes('name=holdfast-beats'), {
      what: 'its connections being gone',
    })
  })

  it('a body that does not come in its time is told so', async () => {
    const { port } = await openOuter(await makeHub(), { limits: { requestMs: 300 } })
    const connection = openRaw(port)
    const head = requestText('POST /holdfast/v1/messages', {
      'content-type': 'application/json',
      'content-length': '1000',
      'idempotency-key': 'k',
    })
    connection.write(`${head}{"conversation":`)
    const [answer] = await connection.over()
    expect(answer).toMatchObject({ status: 408, json: { code: 'DEADLINE_EXCEEDED' } })
  })

  it('a connection on which nothing moves is closed, while that is the hub’s alone', async () => {
    const { port } = await openOuter(await makeHub(), { limits: { stalledMs: 1000 } })
    const connection = openRaw(port)
    connection.write(requestText('GET /holdfast/livez'))
    await connection.answered(1)
    connection.write(requestText('GET /socket'))
    const [, own] = await connection.answered(2)
    expect(own).toMatchObject({ status: 200, json: { timeout: 0 } })
    connection.write(
      requestText('GET /holdfast/v1/messages/1-1?waitMs=1') + requestText('GET /holdfast/v1/events'),
    )
    await connection.over()
  })
})

describe('bodies', () => {
  it('are bounded by the hub, not by the application', async () => {
    const { below } = await openOuter(await makeHub(), { server: { bodyLimit: 1024 } })
    const large = message.replace('1.50', `"${'x'.repeat(1_500_000)}"`)
    expect((await call(below, accept('large', large))).json).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' })
    const fits = message.replace('1.50', `"${'x'.repeat(500_000)}"`)
    expect((await call(below, accept('fits', fits))).status).toBe(201)
    const body = { reason: 'x'.repeat(1_100_000) }
    expect((await call(below, { method: 'PUT', path: '/v1/fences/pause/hub', body })).json).toMatchObject({
      status: 413,
      code: 'BODY_TOO_LARGE',
    })
  })

  it('of no JSON are refused by the hub, and read by nobody', async () => {
    const { below, port } = await openOuter(await makeHub())
    const answer = await call(below, { ...accept('k'), headers: { 'content-type': 'text/csv' } })
    expect(answer.json).toMatchObject({ status: 415, code: 'UNSUPPORTED_MEDIA_TYPE' })
    // The next request of the connection is found where it begins.
    const connection = openRaw(port)
    connection.write(requestText('POST /holdfast/v1/messages', { 'content-type': 'text/csv' }, 'a,b'))
    connection.write(requestText('GET /holdfast/livez'))
    const [refused, next] = await connection.answered(2)
    connection.socket.destroy()
    expect(refused?.status).toBe(415)
    expect(next).toMatchObject({ status: 200, body: expect.stringContaining('ok') })
  })
})

describe('with the principals of the record', () => {
  it('a browser logs in below the prefix, and a token is asked for once there is one', async () => {
    const record = await makeHub()
    const { below, url } = await openOuter(record)
    expect((await call(below, { path: '/v1/me' })).json).toMatchObject({ anonymous: true })
    const { token = '' } = await record.hub.addPrincipal({ name: 'kim', role: 'operator' }, 'tests')
    await until(async () => (await call(below, { path: '/v1/me' })).status === 401, { what: 'the principal' })
    const login = await speak(below, { method: 'POST', path: '/v1/login', body: { token } })
    expect(login.headers['set-cookie']).toEqual([`holdfast=${token}; HttpOnly; SameSite=Strict`])
    const headers = { cookie: `holdfast=${token}`, origin: url }
    expect((await speak(below, { path: '/v1/me', headers })).json).toMatchObject({ name: 'kim' })
    const fence = { method: 'PUT', path: '/v1/fences/pause/hub', body: { reason: 'r' } }
    expect((await speak(below, { ...fence, headers })).status).toBe(401)
    expect((await speak(below, { ...fence, headers: { ...headers, 'holdfast-page': '1' } })).status).toBe(200)
    expect((await speak(below, { path: '/v1/me', token })).status).toBe(200)
  })

  it('without any, an application that listens off loopback has the hub know nobody, and say so', async () => {
    const record = await makeHub()
    const { below, lines } = await openOuter(record, { host: '0.0.0.0' })
    expect((await call(below, { path: '/v1/held' })).status).toBe(401)
    expect(lines.join('')).toContain('AUTHENTICATION_REQUIRED')
    const { token = '' } = await record.hub.addPrincipal({ name: 'kim', role: 'operator' }, 'tests')
    expect((await call(below, { path: '/v1/held', token })).status).toBe(200)
  })
})

describe('with the identities of the application', () => {
  const people: Readonly<Record<string, HoldfastCaller>> = {
    olga: { name: 'olga', role: 'operator' },
    vera: { name: 'vera', role: 'viewer' },
    shop: { name: 'shop', role: 'producer' },
    edge: { name: 'edge', role: 'node', host: 'a', scopes: ['/srv'] },
    unheard: { name: 'unheard', role: 'admin' as 'operator' },
    homeless: { name: 'homeless', role: 'node' },
  }
  /** As a session cookie of the application would say. */
  const authenticate: HoldfastOptions['authenticate'] = async ({ headers: { 'x-user': user } }) => {
    if (user === 'expired') throw Object.assign(new Error('the session is over'), { statusCode: 401 })
    if (user === 'banned') throw Object.assign(new Error('no'), { statusCode: 403 })
    if (user === 'broken') throw new Error('the database of users is away')
    return people[String(user)]
  }
  const as = (user: string, more: Record<string, string> = {}) => ({ 'x-user': user, ...more })
  const page = { 'holdfast-page': '1' }
  const fence = { method: 'PUT', path: '/v1/fences/pause/hub', body: { reason: 'r' } }

  it('its users do what their roles may, under their names', async () => {
    const record = await makeHub()
    const { below } = await openOuter(record, { authenticate })
    const me = async (user: string) => (await speak(below, { path: '/v1/me', headers: as(user) })).json
    expect(await me('olga')).toMatchObject({ name: 'olga', role: 'operator', anonymous: false })
    expect(await me('edge')).toMatchObject({ name: 'edge', role: 'node', host: 'a' })
    expect((await speak(below, { ...fence, headers: as('olga', page) })).status).toBe(200)
    expect(await record.hub.fences()).toMatchObject([{ actor: 'olga' }])
    expect((await speak(below, { ...fence, headers: as('vera', page) })).json).toMatchObject({
      code: 'FORBIDDEN',
    })
    const send = (user: string) => {
      const headers = as(user, { ...page, 'idempotency-key': user })
      const body = { conversation: 'c', to: [{ host: 'a' }], payload: 1 }
      return speak(below, { method: 'POST', path: '/v1/messages', headers, body })
    }
    expect((await send('shop')).status).toBe(201)
    expect((await send('vera')).status).toBe(403)
    const join = { method: 'POST', body: { incarnation: 1, instance: 'i', scopes: ['/srv'] } }
    const joins = (host: string) =>
      speak(below, { ...join, path: `/v1/hosts/${host}/nodes/n`, headers: as('edge', page) })
    expect((await joins('a')).status).toBe(200)
    expect((await joins('b')).status).toBe(403)
  })

  it('whom it does not know is nobody, and what it throws is answered', async () => {
    const record = await makeHub()
    const { below } = await openOuter(record, { authenticate })
    const { token = '' } = await record.hub.addPrincipal({ name: 'kim', role: 'operator' }, 'tests')
    const status = async (headers: Record<string, string>, path = '/v1/held') =>
      (await speak(below, { path, headers })).status
    expect(await status({})).toBe(401)
    expect(await status(as('expired'))).toBe(401)
    expect(await status(as('banned'))).toBe(403)
    for (const user of ['broken', 'unheard', 'homeless']) expect(await status(as(user)), user).toBe(500)
    // Principals of the record are not asked for.
    expect(await status({ authorization: `Bearer ${token}` })).toBe(401)
    expect(await status({ cookie: `holdfast=${token}` })).toBe(401)
    expect((await speak(below, { method: 'POST', path: '/v1/login', body: { token } })).status).toBe(401)
    expect(await status({}, '/livez')).toBe(200)
    expect(await status({}, '/')).toBe(200)
  })

  it('counts for the page of the hub alone, but for a token in Authorization', async () => {
    const { below, url } = await openOuter(await makeHub(), { authenticate })
    const refused: Record<string, string>[] = [
      {},
      { 'holdfast-page': '0' },
      { ...page, origin: 'https://example.com' },
      { ...page, 'sec-fetch-site': 'same-site' },
      { authorization: 'Basic b2xnYTpv' },
    ]
    for (const headers of refused) {
      const answer = await speak(below, { ...fence, headers: as('olga', headers) })
      expect(answer.json, JSON.stringify(headers)).toMatchObject({ code: 'UNAUTHENTICATED' })
    }
    expect((await speak(below, { path: '/v1/held', headers: as('olga', { origin: 'null' }) })).status).toBe(
      401,
    )
    const own = { ...page, origin: url, 'sec-fetch-site': 'same-origin' }
    expect((await speak(below, { ...fence, headers: as('olga', own) })).status).toBe(200)
    const bearer = { authorization: 'Bearer of-the-application', origin: 'https://example.com' }
    expect((await speak(below, { ...fence, headers: as('olga', bearer) })).status).toBe(200)
  })

  it('is served off loopback too, and opens the events', async () => {
    const record = await makeHub()
    const { below } = await openOuter(record, { authenticate, host: '0.0.0.0' })
    const stream = await openStream(below, { path: '/v1/events', headers: as('vera') })
    expect(stream.status).toBe(200)
    await record.functions.pause('hub', 'seen', 'kim')
    await until(() => stream.text().includes('"seen"'), { what: 'the event' })
    await stream.close()
  })
})
