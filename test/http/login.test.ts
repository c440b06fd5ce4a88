import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { digestOf } from '../../src/hub/principals.js'
import { certificate } from '../support/certificate.js'
import {
  type Asked,
  openStream,
  type Spoken,
  speak,
  startHubServer,
  type TestHubServer,
} from '../support/http.js'
import { openRaw } from '../support/raw-http.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// Browsers: they say by themselves who their user is, also where a page of another site has them ask. So the cookie
// counts for the page of the hub alone.

let redis: TestServer
let record: OpenRecord
let hub: TestHubServer
let host: string
let kim: string
let vera: string
let made = 0

beforeAll(async () => {
  redis = await startTestServer()
  record = await openRecord(redis, { name: 'login' })
  hub = await startHubServer(record, { limits: { loginTries: 0 } })
  host = new URL(hub.url).host
  kim = await add('kim', 'operator')
  vera = await add('vera', 'viewer')
})
afterAll(async () => {
  await hub?.close()
  await record?.close()
  await redis?.stop()
})

async function add(name: string, role: 'operator' | 'viewer'): Promise<string> {
  return (await hub.hub.addPrincipal({ name, role }, 'tests')).token ?? ''
}

const cookieOf = (token: string) => ({ cookie: `holdfast=${token}` })
const page = { 'holdfast-page': '1' }

function login(token: string, headers: Record<string, string> = {}, url = hub.url): Promise<Spoken> {
  return speak(url, { method: 'POST', path: '/v1/login', headers, body: { token } })
}

function expectUnauthenticated({ status, json, text }: Spoken, what = text): void {
  expect({ status, json }, what).toMatchObject({ status: 401, json: { code: 'UNAUTHENTICATED' } })
}

/** Resolves when the hub has heard of the revocation. */
async function revoke(name: string): Promise<void> {
  await hub.hub.revokePrincipal(name, { reason: 'left', actor: 'tests' })
}

describe('who speaks', () => {
  it('is told by /v1/me, and whether that may read payloads', async () => {
    const { json, headers } = await speak(hub.url, { path: '/v1/me', token: kim })
    expect(json).toEqual({
      name: 'kim',
      role: 'operator',
      anonymous: false,
      hub: 'login',
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      payloads: true,
    })
    expect(headers['cache-control']).toBe('no-store')
    expect((await speak(hub.url, { path: '/v1/me', token: vera })).json).toMatchObject({ payloads: false })
    const { token } = await hub.hub.addPrincipal({ name: 'n', role: 'node', host: 'a' }, 'tests')
    expect((await speak(hub.url, { path: '/v1/me', token })).json).toMatchObject({ role: 'node', host: 'a' })
    expectUnauthenticated(await speak(hub.url, { path: '/v1/me' }))
  })
})

describe('a login', () => {
  it('answers as /v1/me does, with a cookie that no script reads and no other site has sent', async () => {
    const { status, json, headers } = await login(kim)
    expect(status).toBe(200)
    expect(headers['set-cookie']).toEqual([`holdfast=${kim}; HttpOnly; SameSite=Strict`])
    expect(headers['cache-control']).toBe('no-store')
    const me = await speak(hub.url, { path: '/v1/me', headers: cookieOf(kim) })
    expect(me).toMatchObject({ status: 200, json: json as object })
  })

  it('is for HTTPS alone where the browser sees HTTPS, also by a proxy that ends it', async () => {
    const secure = '; HttpOnly; Secure; SameSite=Strict'
    const proxied = await login(kim, { host: 'hub.example', origin: 'https://hub.example' })
    expect(proxied.headers['set-cookie']).toEqual([`holdfast=${kim}${secure}`])
    const tls = await startHubServer(record, { tls: { certificate: certificate.cert, key: certificate.key } })
    const { headers } = await login(kim, {}, tls.url)
    expect(headers['set-cookie']).toEqual([`holdfast=${kim}${secure}`])
    await tls.close()
  })

  it('with a token that is unknown, revoked, or none sets nothing', async () => {
    const gone = await add('gone', 'operator')
    await revoke('gone')
    for (const token of ['hft_unknown', gone, digestOf(kim)]) {
      const answer = await login(token)
      expectUnauthenticated(answer)
      expect(answer.headers['set-cookie']).toBeUndefined()
    }
    for (const body of [
      {},
      { token: '' },
      { token: `${kim} ` },
      { token: 'ä' },
      { token: 'x'.repeat(513) },
    ]) {
      const answer = await speak(hub.url, { method: 'POST', path: '/v1/login', body })
      expect(answer).toMatchObject({ status: 400, json: { pointer: '#/token' } })
      expect(answer.text).not.toContain(kim)
    }
  })

  it('takes a token of any form that a principal may have', async () => {
    const token = 'a;b="c", d\\e%f=='.replaceAll(' ', '_')
    await hub.hub.addPrincipal({ name: 'odd', role: 'viewer', tokenSha256: digestOf(token) }, 'tests')
    const { headers } = await login(token)
    const [cookie = ''] = headers['set-cookie'] ?? []
    const [pair = ''] = cookie.split('; ')
    expect(await speak(hub.url, { path: '/v1/me', headers: { cookie: pair } })).toMatchObject({
      status: 200,
      json: { name: 'odd' },
    })
  })

  it('is tried so often from one address, and no more often, with the right token neither', async () => {
    const limited = await startHubServer(record)
    const statuses = []
    for (let n = 0; n < 30; n += 1) statuses.push((await login('hft_unknown', {}, limited.url)).status)
    expect(new Set(statuses)).toEqual(new Set([401]))
    for (const token of ['hft_unknown', kim]) {
      const { status, json, headers } = await login(token, {}, limited.url)
      expect({ status, json }).toMatchObject({ status: 429, json: { code: 'RATE_LIMITED' } })
      expect(Number(headers['retry-after'])).toBeGreaterThan(0)
    }
    // Who is logged in goes on.
    expect((await speak(limited.url, { path: '/v1/me', headers: cookieOf(kim) })).status).toBe(200)
    await limited.close()
  })

  it('ends with a logout, which takes the cookie back and nothing else', async () => {
    const answer = await speak(hub.url, { method: 'POST', path: '/v1/logout', headers: cookieOf(kim) })
    expect(answer).toMatchObject({ status: 204, text: '' })
    expect(answer.headers['set-cookie']).toEqual(['holdfast=; Max-Age=0; HttpOnly; SameSite=Strict'])
    expect((await login(kim)).status).toBe(200)
  })
})

/** What browsers say of where a request comes from; `own` is where the hub is reached. */
const foreign = (own: string): readonly (readonly [name: string, headers: Record<string, string>])[] => [
  ['another site', { 'sec-fetch-site': 'cross-site' }],
  ['another origin of this site', { 'sec-fetch-site': 'same-site' }],
  ['a place that nobody knows', { 'sec-fetch-site': 'elsewhere' }],
  ['another site, by its origin', { origin: 'https://example.com' }],
  ['another port', { origin: 'http://127.0.0.1:3000' }],
  ['this host without its port', { origin: 'http://127.0.0.1' }],
  ['a page without an origin', { origin: 'null' }],
  ['an origin that is none', { origin: own }],
  ['an origin with a path', { origin: `http://${own}/` }],
  ['an origin with a name before the host', { origin: `http://kim@${own}` }],
  ['an extension', { origin: `chrome-extension://${own}` }],
  ['another site that claims to be this one', { 'sec-fetch-site': 'cross-site', origin: `http://${own}` }],
  ['this site, of another origin', { 'sec-fetch-site': 'same-origin', origin: 'https://example.com' }],
]

const changes: readonly Asked[] = [
  { method: 'POST', path: '/v1/principals', body: { name: 'planted', role: 'operator' } },
  { method: 'POST', path: '/v1/sweeps/claims/run' },
  { method: 'PUT', path: '/v1/fences/pause/hub', body: { reason: 'r' } },
  { method: 'DELETE', path: '/v1/fences/pause/hub' },
]
const reads: readonly Asked[] = [
  { path: '/v1/me' },
  { path: '/v1/held' },
  { path: '/v1/events' },
  { method: 'HEAD', path: '/v1/principals' },
]

describe('the cookie', () => {
  const speaking = (headers: Record<string, string>, asked: Asked = { path: '/v1/held' }) =>
    speak(hub.url, { ...asked, headers: { ...headers, ...asked.headers } })

  it.each(foreign('127.0.0.1:1').map(([name], at) => [name, at] as const))(
    'counts for nothing in a request of %s, whatever it asks for',
    async (_, at) => {
      const headers = { ...cookieOf(kim), ...page, ...foreign(host)[at]?.[1] }
      const before = await record.dump()
      for (const asked of [...reads, ...changes]) {
        const answer = await speaking(headers, asked)
        expect(answer.status, `${asked.method} ${asked.path}`).toBe(401)
        if (asked.method !== 'HEAD') expectUnauthenticated(answer)
      }
      for (const path of ['/v1/login', '/v1/logout']) {
        const answer = await speaking(headers, { method: 'POST', path, body: { token: kim } })
        expectUnauthenticated(answer)
        expect(answer.headers['set-cookie']).toBeUndefined()
      }
      expect(await record.dump()).toEqual(before)
    },
  )

  it('counts in a request of the page itself, or of the address bar', async () => {
    const own: Record<string, string>[] = [
      {},
      { 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'none' },
      { origin: `http://${host}` },
      { 'sec-fetch-site': 'same-origin', origin: `http://${host}` },
      // A proxy ends TLS, and passes Host on.
      { host: 'hub.example', origin: 'https://hub.example' },
      { host: 'HUB.example:8443', origin: 'https://hub.example:8443' },
      { host: 'hub.example:443', origin: 'https://hub.example' },
      { host: '[::1]:8090', origin: 'http://[::1]:8090' },
    ]
    for (const headers of own) {
      const answer = await speaking({ ...cookieOf(kim), ...headers })
      expect(answer.status, JSON.stringify(headers)).toBe(200)
    }
    for (const headers of [{ host: 'hub.example', origin: 'http://hub.example:443' }, { host: 'a b' }]) {
      const answer = await speaking({ ...cookieOf(kim), origin: `http://${host}`, ...headers })
      expect(answer.status, JSON.stringify(headers)).toBe(401)
    }
  })

  it('changes something only where the page says so', async () => {
    const before = await record.dump()
    for (const asked of changes) {
      for (const headers of [{}, { 'holdfast-page': '0' }, { 'holdfast-page': 'true' }]) {
        const answer = await speaking({ ...cookieOf(kim), ...headers }, asked)
        expectUnauthenticated(answer, `${asked.method} ${asked.path} ${JSON.stringify(headers)}`)
        expect(answer.json).toMatchObject({ detail: expect.stringContaining('Holdfast-Page') })
      }
    }
    expect(await record.dump()).toEqual(before)
    const fence = { method: 'PUT', path: '/v1/fences/pause/hub', body: { reason: 'r' } }
    expect((await speaking({ ...cookieOf(kim), ...page }, fence)).status).toBe(200)
    expect(await hub.hub.fences()).toMatchObject([{ actor: 'kim' }])
    const lift = { method: 'DELETE', path: fence.path }
    expect((await speaking({ ...cookieOf(kim), ...page }, lift)).status).toBe(200)
    // It is no more than its principal.
    const denied = await speaking({ ...cookieOf(vera), ...page }, fence)
    expect(denied).toMatchObject({ status: 403, json: { code: 'FORBIDDEN' } })
  })

  it('is one, and a token', async () => {
    const refused = [
      `holdfast=${kim}; holdfast=${kim}`,
      `holdfast=${vera}; other=1;holdfast=${kim}`,
      'holdfast=',
      'holdfast',
      `holdfast="${kim}"`,
      `holdfast=${kim},x`,
      `holdfast=${kim}=`,
      `holdfast=${kim} x`,
      'holdfast=%',
      'holdfast=%0a',
      'holdfast=hft_unknown',
      `holdfast=${'x'.repeat(2000)}`,
      `xholdfast=${kim}`,
      `holdfastx=${kim}`,
      `HOLDFAST=${kim}`,
      `other="; holdfast_=${kim}"`,
    ]
    for (const cookie of refused) expectUnauthenticated(await speaking({ cookie }), cookie)
    for (const cookie of [`a=1; holdfast=${kim}; b="2"`, `=;;holdfast=${kim};`, `  holdfast = ${kim}  `]) {
      expect((await speaking({ cookie })).status, cookie).toBe(200)
    }
  })

  it.each(['cookie', 'origin', 'sec-fetch-site', 'holdfast-page'])(
    'the header %s stands once',
    async (name) => {
      const connection = openRaw(Number(new URL(hub.url).port))
      const twice = `${name}: a\r\n${name.toUpperCase()}: b\r\n`
      connection.write(
        `GET /v1/held HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${kim}\r\n${twice}\r\n`,
      )
      const [answer] = await connection.answered(1)
      connection.socket.destroy()
      expect(answer).toMatchObject({ status: 400, json: { pointer: `header:/${name}` } })
    },
  )

  it('is not looked at where there is an Authorization', async () => {
    const headers = { cookie: 'holdfast=hft_unknown; holdfast=x', origin: 'https://example.com' }
    const fence = { method: 'PUT', path: '/v1/fences/pause/host%3Anone', body: { reason: 'r' }, token: kim }
    expect((await speaking(headers, { path: '/v1/held', token: kim })).status).toBe(200)
    expect((await speaking(headers, fence)).status).toBe(200)
    expectUnauthenticated(await speaking(cookieOf(kim), { path: '/v1/held', token: 'hft_unknown' }))
    expectUnauthenticated(await speaking({ ...cookieOf(kim), authorization: 'Basic a2ltOms=' }))
    const viewer = await speaking({ ...cookieOf(kim), ...page }, { ...fence, token: vera })
    expect(viewer.status).toBe(403)
  })

  it('opens the events, and is worth nothing once its principal is revoked', async () => {
    made += 1
    const name = `short-${made}`
    const token = await add(name, 'operator')
    const headers = { ...cookieOf(token), 'sec-fetch-site': 'same-origin' }
    const stream = await openStream(hub.url, { path: '/v1/events', headers })
    expect(stream.status).toBe(200)
    await record.functions.pause('host:seen', 'seen', 'kim')
    await until(() => stream.text().includes('"seen"'), { what: 'the event' })
    await revoke(name)
    await stream.ended
    await until(async () => (await speaking(headers, { path: '/v1/events' })).status === 401)
    expectUnauthenticated(await speaking({ ...headers, ...page }, changes[0]))
  })
})

describe('a certificate, which a browser shows by itself too', () => {
  it('counts for no page of another origin', async () => {
    const tls = await startHubServer(record, { tls: { certificate: certificate.cert, key: certificate.key } })
    await hub.hub.addPrincipal({ name: 'pinned', role: 'operator', certificate: certificate.cert }, 'tests')
    const own = new URL(tls.url).host
    const ask = (headers: Record<string, string>, asked: Asked) =>
      speak(tls.url, { ...asked, headers }, certificate)
    await until(async () => (await ask({}, { path: '/v1/held' })).status === 200, { what: 'the principal' })
    const before = await record.dump()
    for (const [name, headers] of foreign(own)) {
      for (const asked of changes) expectUnauthenticated(await ask(headers, asked), name)
    }
    expect(await record.dump()).toEqual(before)
    // A program says nothing of where it comes from, and needs to say nothing more.
    expect((await ask({}, { method: 'POST', path: '/v1/sweeps/claims/run' })).status).toBe(200)
    expect((await ask({ origin: tls.url }, { path: '/v1/held' })).status).toBe(200)
    // Of both the cookie counts.
    expect((await ask(cookieOf(vera), { path: '/v1/me' })).json).toMatchObject({ name: 'vera' })
    expectUnauthenticated(await ask({ cookie: 'holdfast=hft_unknown' }, { path: '/v1/me' }))
    await tls.close()
  })
})

describe('while no principal exists', () => {
  let young: OpenRecord
  let open: TestHubServer
  let own: string

  beforeEach(async () => {
    made += 1
    young = await openRecord(redis, { name: `young-${made}` })
    open = await startHubServer(young)
    own = new URL(open.url).host
  })
  afterEach(async () => {
    await open.close()
    await young.close()
  })

  const fence = { method: 'PUT', path: '/v1/fences/pause/hub', body: { reason: 'r' } }

  it('the page on loopback is the operator, without a login', async () => {
    for (const headers of [{}, { origin: `http://${own}`, 'sec-fetch-site': 'same-origin' }]) {
      const { json } = await speak(open.url, { path: '/v1/me', headers })
      expect(json).toMatchObject({ name: 'loopback', role: 'operator', anonymous: true, payloads: true })
      expect((await speak(open.url, { ...fence, headers })).status).toBe(200)
    }
    const localhost = own.replace('127.0.0.1', 'localhost')
    const headers = { host: localhost, origin: `http://${localhost}` }
    expect((await speak(open.url, { path: '/v1/held', headers })).status).toBe(200)
  })

  it('a page of any other origin is nobody', async () => {
    const before = await young.dump()
    for (const [name, headers] of foreign(own)) {
      for (const asked of [...reads, ...changes]) {
        expect((await speak(open.url, { ...asked, headers })).status, `${name}: ${asked.path}`).toBe(401)
      }
    }
    expect(await young.dump()).toEqual(before)
  })

  it('a name that was made to lead to this machine is nobody, also of its own origin', async () => {
    const host = `rebound.example:${new URL(open.url).port}`
    for (const headers of [{ host }, { host, origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }]) {
      expectUnauthenticated(await speak(open.url, { ...fence, headers }))
    }
  })

  it('a proxy is nobody, though the origin is its own', async () => {
    const headers = { origin: `http://${own}`, 'x-forwarded-for': '192.0.2.1' }
    expectUnauthenticated(await speak(open.url, { ...fence, headers }))
  })

  it('a cookie of another hub of this machine is in nobody’s way, until there is a principal', async () => {
    const headers = { ...cookieOf(kim), origin: `http://${own}` }
    expect((await speak(open.url, { ...fence, headers })).status).toBe(200)
    expectUnauthenticated(await login(kim, {}, open.url))
    const { token = '' } = await open.hub.addPrincipal({ name: 'first', role: 'operator' }, 'tests')
    await until(async () => (await speak(open.url, { path: '/v1/held', headers })).status === 401)
    expect((await login(token, {}, open.url)).status).toBe(200)
    expect((await speak(open.url, { path: '/v1/held', headers: cookieOf(token) })).status).toBe(200)
  })
})

it('no token and no cookie came into the log', () => {
  const lines = hub.lines.join('')
  expect(lines).toContain('/v1/login')
  for (const word of [kim, vera]) expect(lines).not.toContain(word)
  expect(lines).not.toMatch(/hft_|cookie/i)
})
