import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { PrincipalInput } from '../../src/contract/hub.js'
import type { PrincipalView } from '../../src/contract/principal-views.js'
import { digestOf } from '../../src/hub/principals.js'
import { certificate } from '../support/certificate.js'
import {
  type Answer,
  type Asked,
  type ClientCertificate,
  call,
  openStream,
  type Stream,
  speak,
  startHubServer,
  type TestHubServer,
} from '../support/http.js'
import { hashOf, type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let redis: TestServer
let record: OpenRecord
let hubs: { readonly a: TestHubServer; readonly b: TestHubServer }
let kim: string
let made = 0

beforeAll(async () => {
  redis = await startTestServer()
  record = await openRecord(redis, { name: 'identities' })
  await record.config('stale_after_ms', 600_000)
  hubs = { a: await startHubServer(record), b: await startHubServer(record) }
  kim = await add({ name: 'kim', role: 'operator' }, {})
})
afterAll(async () => {
  await Promise.all(Object.values(hubs ?? {}).map((hub) => hub.close()))
  await record?.checkInvariants()
  await record?.close()
  await redis?.stop()
})

/** A name that nobody had. */
function fresh(word: string): string {
  made += 1
  return `${word}-${made}`
}

/** Who asks. */
interface Spoken {
  readonly token?: string | undefined
}

/** Adds a principal over HTTP, on hub `a`; answers its token. */
async function add(input: PrincipalInput, { token }: Spoken = { token: kim }): Promise<string> {
  const answer = await call<{ token?: string }>(hubs.a.url, {
    method: 'POST',
    path: '/v1/principals',
    token,
    body: input,
  })
  expect(answer.status, answer.text).toBe(201)
  return answer.json.token ?? ''
}

/** Revokes a principal over HTTP, on hub `a`. */
async function revoke(name: string): Promise<void> {
  const answer = await call(hubs.a.url, {
    method: 'POST',
    path: `/v1/principals/${name}/revoke`,
    token: kim,
    body: { reason: 'left' },
  })
  expect(answer.status, answer.text).toBe(200)
}

async function statusOf(hub: TestHubServer, token: string | undefined, path: string): Promise<number> {
  return (await call(hub.url, { path, token })).status
}

function expectUnauthenticated(answer: Pick<Answer, 'status' | 'json' | 'text'>): void {
  expect(answer.json, answer.text).toMatchObject({ code: 'UNAUTHENTICATED' })
  expect(answer.status).toBe(401)
}

/** Resolves when this many requests wait on the hub. */
async function waiting(hub: TestHubServer, count: number, { token }: Spoken = { token: kim }): Promise<void> {
  await until(
    async () =>
      (await call(hub.url, { path: '/metrics', token })).text.includes(`\nholdfast_http_waiting ${count}\n`),
    { what: `${count} waiting` },
  )
}

/** A node principal of a host of its own, and a claim of its node that waits for a minute. */
async function nodeThatClaims(hub: TestHubServer) {
  const host = fresh('host')
  const token = await add({ name: host, role: 'node', host })
  await record.join(host, 'n')
  const body = { node: 'n', incarnation: 1, request: 1, waitMs: 60_000 }
  const claim = call(hub.url, { method: 'POST', path: `/v1/hosts/${host}/claim`, token, body })
  await waiting(hub, 1)
  return { host, token, claim }
}

describe.each(['a', 'b'] as const)('a principal that was revoked on hub a, seen from hub %s', (which) => {
  it('its claim under way ends and claims nothing', async () => {
    const hub = hubs[which]
    const { host, token, claim } = await nodeThatClaims(hub)
    await revoke(host)
    expectUnauthenticated(await claim)
    const { deliveries } = await record.accept({ to: [{ host }] })
    await waiting(hub, 0)
    expect(await record.fields(deliveries[0]?.id ?? '')).toMatchObject({ state: 'queued' })
    expect(await statusOf(hub, token, `/v1/deliveries?host=${host}`)).toBe(401)
  })

  it('claims nothing either of what is accepted in the same moment', async () => {
    const hub = hubs[which]
    for (let round = 0; round < 5; round += 1) {
      const { host, claim } = await nodeThatClaims(hub)
      const revoked = record.functions.revokePrincipal(host, 'kim', 'left')
      const { deliveries } = await record.accept({ to: [{ host }] })
      await revoked
      expectUnauthenticated(await claim)
      expect(await record.fields(deliveries[0]?.id ?? '')).toMatchObject({ state: 'queued' })
    }
  })

  it('its stream of events ends, and tells nothing more', async () => {
    const hub = hubs[which]
    const name = fresh('viewer')
    const token = await add({ name, role: 'viewer' })
    const stream = await openStream(hub.url, { path: '/v1/events', token })
    expect(stream.status).toBe(200)
    await record.functions.pause('hub', 'seen', 'kim')
    await until(() => stream.text().includes('"seen"'), { what: 'the event' })
    await revoke(name)
    await stream.ended
    await record.functions.lift('pause', 'hub', 'kim')
    expect(stream.text()).not.toContain('event: lift')
    expect(await statusOf(hub, token, '/v1/events')).toBe(401)
  })

  it('its wait for a message ends', async () => {
    const hub = hubs[which]
    const name = fresh('producer')
    const token = await add({ name, role: 'producer' })
    const { id } = await record.accept({ sender: name })
    const answer = call(hub.url, { path: `/v1/messages/${id}?waitMs=60000`, token })
    await waiting(hub, 1)
    await revoke(name)
    expectUnauthenticated(await answer)
  })
})

describe('a client that goes away', () => {
  it('leaves nothing that waits, or keeps a hub from closing', async () => {
    const hub = await startHubServer(record)
    const host = fresh('host')
    await record.join(host, 'n')
    const { id } = await record.accept()
    const leaving = new AbortController()
    const body = { node: 'n', incarnation: 1, request: 1, waitMs: 60_000 }
    const common = { token: kim, signal: leaving.signal }
    const stream = await openStream(hub.url, { path: '/v1/events', token: kim })
    const under = [
      call(hub.url, { ...common, method: 'POST', path: `/v1/hosts/${host}/claim`, body }),
      call(hub.url, { ...common, path: `/v1/messages/${id}?waitMs=60000` }),
    ]
    const ended = Promise.allSettled(under)
    await waiting(hub, 3)
    leaving.abort()
    await Promise.all([ended, stream.close()])
    await waiting(hub, 0)
    const startedAt = performance.now()
    await hub.close()
    expect(performance.now() - startedAt).toBeLessThan(5000)
  })
})

describe('a token', () => {
  it('works at once on every hub, and at once no more once it is revoked', async () => {
    for (let round = 0; round < 10; round += 1) {
      const name = fresh('viewer')
      const token = await add({ name, role: 'viewer' })
      expect(await statusOf(hubs.b, token, '/v1/held')).toBe(200)
      expect(await statusOf(hubs.a, token, '/v1/held')).toBe(200)
      await revoke(name)
      expect(await statusOf(hubs.a, token, '/v1/held')).toBe(401)
      await until(async () => (await statusOf(hubs.b, token, '/v1/held')) === 401, { timeoutMs: 2500 })
    }
  })

  it('is shown once: the record keeps its digest, and no other answer has either', async () => {
    const name = fresh('viewer')
    const asked = { method: 'POST', path: '/v1/principals', token: kim, body: { name, role: 'viewer' } }
    const first = await call<{ token: string }>(hubs.a.url, asked)
    const { token } = first.json
    expect(token).toMatch(/^hft_[\w-]{43}$/)
    expect(first.headers.get('cache-control')).toBe('no-store')
    const dump = JSON.stringify(await record.dump())
    expect(dump).toContain(digestOf(token))
    for (const each of [token, kim]) expect(dump).not.toContain(each.slice('hft_'.length))

    const again = await call(hubs.a.url, asked)
    expect(again.json).toMatchObject({ status: 409, code: 'PRINCIPAL_EXISTS' })
    const list = await call<{ principals: PrincipalView[] }>(hubs.b.url, {
      path: '/v1/principals',
      token: kim,
    })
    expect(list.json.principals.map((each) => each.name)).toContain(name)
    const one = await call(hubs.b.url, { path: `/v1/principals/${name}`, token: kim })
    const revoked = await call(hubs.a.url, {
      method: 'POST',
      path: `/v1/principals/${name}/revoke`,
      token: kim,
      body: { reason: 'left' },
    })
    for (const { text } of [again, list, one, revoked]) {
      expect(text).toContain(name)
      expect(text).not.toMatch(/hft_|"token":|token_?sha256/i)
      expect(text).not.toContain(digestOf(token))
    }
  })

  it('is a whole one in the Authorization header, and nothing like it', async () => {
    const before = await record.dump()
    const headers = [
      digestOf(kim),
      `Bearer ${digestOf(kim)}`,
      kim,
      `Basic ${kim}`,
      `Basic ${Buffer.from(`kim:${kim}`).toString('base64')}`,
      'Bearer',
      'Bearer kim',
      `Bearer ${kim.slice(0, -1)}`,
      `Bearer ${kim}x`,
      `Bearer ${kim} ${kim}`,
      `Bearer ${kim}, Bearer ${kim}`,
      `Bearer ${'x'.repeat(2000)}`,
    ]
    for (const authorization of headers) {
      expectUnauthenticated(await call(hubs.a.url, { path: '/v1/held', headers: { authorization } }))
    }
    for (const path of [`/v1/held?token=${kim}`, `/v1/held?access_token=${kim}`]) {
      expect(await statusOf(hubs.a, undefined, path)).toBe(401)
    }
    expect(await record.dump()).toEqual(before)
    const authorization = `bearer  ${kim} `
    expect((await call(hubs.a.url, { path: '/v1/held', headers: { authorization } })).status).toBe(200)
  })
})

describe('a client certificate', () => {
  let secure: TestHubServer
  const tls = { certificate: certificate.cert, key: certificate.key }

  beforeAll(async () => {
    secure = await startHubServer(record, { tls })
    await add({ name: 'edge', role: 'node', host: 'edge', certificate: pinned.cert })
  })
  afterAll(() => secure?.close())

  const as = (client: ClientCertificate | undefined, asked: Asked) => speak(secure.url, asked, client)

  it('speaks as the principal that pins it', async () => {
    expect(await as(pinned, { path: '/v1/hosts/edge/pending' })).toMatchObject({ status: 200 })
    expect(await as(pinned, { path: '/v1/hosts/other/pending' })).toMatchObject({ status: 403 })
    expect(await as(pinned, { path: '/v1/held' })).toMatchObject({
      json: { code: 'FORBIDDEN', detail: expect.stringContaining('"edge" is a node') },
    })
    const { json } = await as(undefined, { path: '/v1/principals/edge', token: kim })
    expect(json).toMatchObject({ principal: { credential: 'certificate' } })
  })

  it('is pinned to one principal at most', async () => {
    const body = { name: fresh('edge'), role: 'operator', certificate: pinned.cert }
    const answer = await as(undefined, { method: 'POST', path: '/v1/principals', token: kim, body })
    expect(answer.json).toMatchObject({ status: 409, code: 'PRINCIPAL_EXISTS' })
  })

  it('is refused when it is another, none, or out of its time', async () => {
    await add({ name: 'late', role: 'operator', certificate: expired.cert })
    for (const client of [certificate, undefined, expired]) {
      expectUnauthenticated(await as(client, { path: '/v1/hosts/edge/pending' }))
    }
  })

  it('does not help a token that is unknown, nor does a token need one', async () => {
    const path = '/v1/hosts/edge/pending'
    expectUnauthenticated(await as(pinned, { path, token: 'hft_unknown' }))
    expect(await as(undefined, { path, token: kim })).toMatchObject({ status: 200 })
    expect(await as(certificate, { path, token: kim })).toMatchObject({ status: 200 })
  })

  it('in two processes: one node twice is refused, another node does not touch what the first holds', async () => {
    const node = (name: string) => `/v1/hosts/edge/nodes/${name}`
    const post = (path: string, body: unknown) => as(pinned, { method: 'POST', path, body })
    const join = (name: string, instance: string) => post(node(name), { incarnation: 1, instance })
    expect(await join('one', 'first')).toMatchObject({ status: 200 })
    await record.acceptMany(4, { to: [{ host: 'edge' }] })
    const one = { host: 'edge', node: 'one', incarnation: 1, request: 0 }
    const { deliveries } = await record.claim(one)
    const [claimed, mirrored, idle, begun] = deliveries
    if (!claimed || !mirrored || !idle || !begun) throw new Error('the first node holds too little')
    await record.functions.mirror(one, [mirrored, idle, begun])
    await record.functions.ack(one, [idle, begun])
    const { attempt, grant } = await record.begin(one, begun)

    const before = await record.dump()
    const twice = await join('one', 'second')
    expect(twice.json).toMatchObject({ status: 409, code: 'MIRROR_CLONED' })
    expect(await record.dump()).toEqual(before)

    expect(await join('two', 'second')).toMatchObject({ status: 200 })
    const joined = await record.dump()
    const two = { node: 'two', incarnation: 1 }
    const item = ({ id, epoch }: { id: string; epoch: number }) => ({ id, epoch })
    const outcome = { kind: 'result', result: 1 }
    const tried = [
      await post('/v1/hosts/edge/mirror', { ...two, items: [item(claimed)] }),
      await post('/v1/hosts/edge/ack', { ...two, items: [item(mirrored)] }),
      await post('/v1/hosts/edge/begin', { ...two, items: [{ ...item(idle), grant: 'mine' }] }),
      await post('/v1/hosts/edge/begin', { ...two, items: [{ ...item(begun), grant }] }),
      await post('/delivery-report', {
        host: 'edge',
        ...two,
        reports: [{ attempt, grant, key: 'k', outcome }],
      }),
    ]
    for (const { json } of tried) {
      expect(json).toMatchObject({
        results: [{ ok: false, code: expect.stringMatching(/^(NOT_OWNER|STALE_EPOCH|GRANT_OPEN)$/) }],
      })
    }
    expect(await record.dump()).toEqual(joined)
  })

  it('is refused once its principal is revoked, also on a connection that was let in', async () => {
    await revoke('edge')
    await until(async () => (await as(pinned, { path: '/v1/hosts/edge/pending' })).status === 401)
  })
})

describe('while no principal exists', () => {
  let young: OpenRecord
  let hub: TestHubServer
  const added: PrincipalInput = { name: 'first', role: 'operator' }

  beforeEach(async () => {
    young = await openRecord(redis, { name: fresh('young') })
    hub = await startHubServer(young)
  })
  afterEach(async () => {
    await hub.close()
    await young.close()
  })

  it('everyone on loopback is the operator, under the name they give', async () => {
    const fence = { method: 'PUT', path: '/v1/fences/pause/hub', body: { reason: 'r' } }
    expect(await call(hub.url, fence)).toMatchObject({ status: 200 })
    expect(await hub.hub.fences()).toMatchObject([{ actor: 'loopback' }])
    await call(hub.url, { ...fence, headers: { 'holdfast-actor': 'kim%20b' } })
    expect(await hub.hub.fences()).toMatchObject([{ actor: 'kim b' }])
    const message = { conversation: 'c', to: [{ host: 'a' }], payload: 1 }
    const accept = { method: 'POST', path: '/v1/messages', headers: { 'idempotency-key': 'k' } }
    const nameless = await call(hub.url, { ...accept, body: message })
    expect(nameless.json).toMatchObject({ status: 400, pointer: '#/sender' })
    const { status } = await call(hub.url, { ...accept, body: { ...message, sender: 'billing' } })
    expect(status).toBe(201)
  })

  it.each([
    ['an unknown token', { authorization: 'Bearer hft_unknown' }],
    ['credentials of another kind', { authorization: 'Basic a2ltOms=' }],
    ['another host', { host: 'hub.example.com' }],
    ['another host that looks like this one', { host: '127.0.0.1.example.com' }],
    ['a proxy', { 'x-forwarded-for': '192.0.2.1' }],
    ['a proxy by RFC 7239', { forwarded: 'for=192.0.2.1' }],
    ['a proxy by its name', { via: '1.1 edge' }],
    ['a proxy that says whom it speaks for', { 'x-real-ip': '192.0.2.1' }],
    ['a proxy that says what was asked for', { 'x-forwarded-host': 'hub.example.com' }],
    ['a web page', { origin: 'https://example.com' }],
    ['a web page of this machine', { origin: 'http://127.0.0.1:3000' }],
    ['a web page without an origin', { origin: 'null' }],
  ])('a request that names %s is refused', async (_, headers) => {
    const before = await young.dump()
    for (const asked of [
      { path: '/v1/held', headers },
      { method: 'POST', path: '/v1/principals', headers, body: added },
    ]) {
      expectUnauthenticated(await speak(hub.url, asked))
    }
    expect(await young.dump()).toEqual(before)
    expect(await speak(hub.url, { path: '/livez', headers })).toMatchObject({ status: 200 })
  })

  it.each(['localhost', 'localhost:8090', '127.0.0.1', '[::1]:8090'])(
    'a request to %s is served',
    async (host) => {
      expect(await speak(hub.url, { path: '/v1/held', headers: { host } })).toMatchObject({ status: 200 })
    },
  )

  it('with the first one nobody is anonymous any more, on any hub, whoever was let in before', async () => {
    const other = await startHubServer(young)
    await young.join('a', 'n')
    await young.join('a', 'm')
    const under: Record<string, { claim: Promise<Answer>; stream: Stream }> = {}
    for (const [node, { url }] of Object.entries({ n: hub, m: other })) {
      const body = { node, incarnation: 1, request: 1, waitMs: 60_000 }
      under[node] = {
        claim: call(url, { method: 'POST', path: '/v1/hosts/a/claim', body }),
        stream: await openStream(url, { path: '/v1/events' }),
      }
    }
    for (const each of [hub, other]) await waiting(each, 2, {})
    const { json } = await call<{ token: string }>(hub.url, {
      method: 'POST',
      path: '/v1/principals',
      body: added,
    })
    expect(await statusOf(hub, undefined, '/v1/held')).toBe(401)
    for (const { claim, stream } of Object.values(under)) {
      expectUnauthenticated(await claim)
      await stream.ended
    }
    expect(await statusOf(other, undefined, '/v1/held')).toBe(401)
    expect(await statusOf(other, json.token, '/v1/held')).toBe(200)
    // Nor when that one is gone again, nor on a hub that starts after that.
    await young.functions.revokePrincipal('first', 'tests', 'left')
    const later = await startHubServer(young)
    expect(await statusOf(later, undefined, '/v1/held')).toBe(401)
    await Promise.all([other.close(), later.close()])
  })

  it('only loopback is listened on', async () => {
    const everywhere = { listen: { host: '0.0.0.0', port: 0 } }
    await expect(startHubServer(young, everywhere)).rejects.toMatchObject({ code: 'AUTHENTICATION_REQUIRED' })
    const { token } = await hub.hub.addPrincipal(added, 'tests')
    const open = await startHubServer(young, everywhere)
    const url = open.url.replace('0.0.0.0', '127.0.0.1')
    expect(await call(url, { path: '/v1/held' })).toMatchObject({ status: 401 })
    expect(await call(url, { path: '/v1/held', token })).toMatchObject({ status: 200 })
    await open.close()
  })
})

describe('an act of an operator carries its name and the reason', () => {
  const reason = 'the customer asked'

  async function lastEntry(): Promise<Record<string, string>> {
    const [entry] = (await record.send('XREVRANGE', record.keys.log, '+', '-', 'COUNT', 1)) as [
      [string, unknown],
    ]
    return hashOf(entry[1])
  }

  /** As kim, who says to be somebody else. */
  async function asKim(method: string, path: string, body?: unknown): Promise<void> {
    const headers = { 'holdfast-actor': 'mallory' }
    const answer = await call(hubs.a.url, { method, path, body, headers, token: kim })
    expect(answer.status, answer.text).toBeLessThan(300)
  }

  async function hash(key: string): Promise<Record<string, string>> {
    return hashOf(await record.send('HGETALL', key))
  }

  it('on a delivery', async () => {
    const host = fresh('host')
    const [one = '', two = '', three = ''] = await record.acceptMany(3, { to: [{ host }] })
    const acts = [
      [one, 'hold', 'hold_delivery', { held_by: 'kim', held_reason: reason }],
      [one, 'release', 'release', { requeued_by: 'kim', requeued_reason: reason }],
      [two, 'hold', 'hold_delivery', { held_by: 'kim', held_reason: reason }],
      [two, 'reject', 'reject', { failed_by: 'kim', failed_detail: reason }],
      [three, 'cancel', 'cancel', { failed_by: 'kim', failed_detail: reason }],
    ] as const
    for (const [id, act, verb, row] of acts) {
      await asKim('POST', `/v1/deliveries/${id}/${act}`, { reason })
      expect(await record.fields(id)).toMatchObject(row)
      expect(await lastEntry()).toMatchObject({ verb, actor: 'kim', reason })
    }
  })

  it('on every delivery that a filter names', async () => {
    const host = fresh('host')
    const ids = await record.acceptMany(2, { to: [{ host }] })
    await asKim('POST', '/v1/deliveries/cancel', { filter: { state: 'queued', host }, reason })
    for (const id of ids)
      expect(await record.fields(id)).toMatchObject({ failed_by: 'kim', failed_detail: reason })
    expect(await lastEntry()).toMatchObject({ verb: 'cancel', actor: 'kim', reason })
  })

  it('on a fence, a host, the settings and a principal', async () => {
    const { keys } = record
    for (const kind of ['pause', 'hold', 'block']) {
      const path = `/v1/fences/${kind}/conversation%3Anone`
      await asKim('PUT', path, { reason })
      const fences = await hash(keys.fences)
      expect(JSON.parse(fences[`${kind}:conversation:none`] ?? '{}')).toMatchObject({ actor: 'kim', reason })
      expect(await lastEntry()).toMatchObject({ verb: kind, actor: 'kim', reason })
      await asKim('DELETE', path)
      expect(await lastEntry()).toMatchObject({ verb: 'lift', actor: 'kim' })
    }
    const host = fresh('host')
    await record.accept({ to: [{ host }] })
    await asKim('POST', `/v1/hosts/${host}/drain`)
    expect(await lastEntry()).toMatchObject({ verb: 'pause', actor: 'kim', reason: 'drain' })
    await asKim('POST', `/v1/hosts/${host}/retire`, { reason })
    expect(await hash(keys.host(host))).toMatchObject({ retired_by: 'kim', retired_reason: reason })
    expect(await lastEntry()).toMatchObject({ verb: 'retire', actor: 'kim', reason })

    await asKim('PUT', '/v1/config', { max_redrive: 9 })
    expect(await lastEntry()).toMatchObject({ verb: 'configure', actor: 'kim', settings: 'max_redrive=9' })

    const name = fresh('viewer')
    await asKim('POST', '/v1/principals', { name, role: 'viewer' })
    expect(await lastEntry()).toMatchObject({ verb: 'add_principal', actor: 'kim', principal: name })
    await asKim('POST', `/v1/principals/${name}/revoke`, { reason })
    expect(await hash(keys.principal(name))).toMatchObject({
      created_by: 'kim',
      revoked_by: 'kim',
      revoked_reason: reason,
    })
    expect(await lastEntry()).toMatchObject({ verb: 'revoke_principal', actor: 'kim', reason })
  })
})

describe('the log and the problems of a hub hold nothing secret', () => {
  const canary = 'canary-5f0c2b'
  const base64 = Buffer.from(canary).toString('base64')
  let hub: TestHubServer
  let faulty = false

  beforeAll(async () => {
    const onPoint = () => {
      if (faulty) throw new Error('a fault')
    }
    hub = await startHubServer(record, { onPoint })
  })
  afterAll(() => hub?.close())

  it('of what is served, refused or fails', async () => {
    const host = fresh('host')
    const node = { name: host, role: 'node', host } as const
    const token = await add(node)
    await record.join(host, 'n')
    const answers: Answer[] = []
    const ask = async (asked: Asked) => {
      const answer = await call<{ deliveries: { id: string; epoch: number }[] }>(hub.url, asked)
      answers.push(answer)
      return answer
    }
    const accept = (body: unknown) =>
      ask({
        method: 'POST',
        path: '/v1/messages',
        token: kim,
        headers: { 'idempotency-key': fresh('key') },
        body,
      })
    const to = `"conversation":"c","to":[{"host":"${host}"}]`

    // Served: these answers are not looked at, only what is logged of them.
    expect((await accept(`{${to},"payload":{"note":"${canary}"}}`)).status).toBe(201)
    expect((await accept(`{${to},"payloadBase64":"${base64}","contentType":"text/plain"}`)).status).toBe(201)
    const claim = { node: 'n', incarnation: 1, request: 1, count: 2 }
    const claimed = await ask({ method: 'POST', path: `/v1/hosts/${host}/claim`, token, body: claim })
    expect(claimed.text).toContain(canary)
    expect(claimed.text).toContain(base64)
    answers.length = 0

    // Refused: with the secret at every place of a request.
    await accept(`{${to},"payload":{"note":"${canary}"}`)
    await accept(`{${to},"payload":{"note":"${canary}","note":"${canary}"}}`)
    await accept(`{${to},"payload":"${canary}","payloadBase64":"${base64}"}`)
    await accept(`{${to},"payloadBase64":"${canary}!"}`)
    await accept(`{${to},"payload":"${canary}","extra":"${canary}"}`)
    await accept(`{"conversation":["${canary}"],"to":"${canary}","payload":"${canary}"}`)
    await accept(`"${canary}"`)
    await accept(canary)
    await accept(`{${to},"payload":"${canary}${'x'.repeat(1_100_000)}"}`)
    await ask({ method: 'POST', path: '/v1/principals', token: kim, body: { name: 'x', role: canary } })
    await ask({
      method: 'POST',
      path: '/v1/principals',
      token: kim,
      body: { name: 'x', role: 'viewer', certificate: canary },
    })
    await ask({ method: 'POST', path: '/v1/held', token: kim, body: { note: canary } })
    await ask({
      method: 'POST',
      path: `/v1/hosts/${host}/mirror`,
      token,
      body: { node: 'n', incarnation: 1, items: [{ id: canary, epoch: canary }] },
    })
    const outcome = { kind: 'result', result: { note: canary } }
    const reports = [{ attempt: '1-1.1/1', grant: 'g', key: 'k', outcome: { ...outcome, extra: canary } }]
    await ask({
      method: 'POST',
      path: '/delivery-report',
      token,
      body: { host, node: 'n', incarnation: 1, reports },
    })
    for (const authorization of [
      `Bearer ${canary}`,
      `Basic ${base64}`,
      canary,
      `Bearer ${canary} ${canary}`,
    ]) {
      await ask({ path: '/v1/held', headers: { authorization } })
    }
    for (const path of ['/v1/held', '/v1/nothing', '/v1/messages/1-1', '/v1/deliveries', '/livez']) {
      await ask({ path: `${path}?note=${canary}&waitMs=${canary}&limit=${canary}`, token: kim })
      await ask({ path: `${path}?note=${canary}` })
    }

    // Fails: the record is damaged, and the hub has a fault, each while the hub holds the payload.
    const kept = `${record.keys.counts}-kept`
    await record.send('RENAME', record.keys.counts, kept)
    await record.send('SET', record.keys.counts, 'no hash')
    expect((await accept(`{${to},"payload":"${canary}"}`)).json).toMatchObject({ code: 'RECORD_DAMAGED' })
    await record.send('DEL', record.keys.counts)
    await record.send('RENAME', kept, record.keys.counts)
    faulty = true
    const failed = await accept(`{${to},"payload":"${canary}"}`)
    faulty = false
    expect(failed.json).toMatchObject({ status: 500, code: 'INTERNAL' })

    expect(answers.filter(({ status }) => status >= 400).length).toBeGreaterThan(25)
    for (const { text } of answers) expect(text).not.toMatch(new RegExp(`${canary}|${base64}|hft_`))
    const lines = [hub, ...Object.values(hubs)].flatMap((each) => each.lines)
    expect(lines.filter((line) => line.includes('"answered"')).length).toBeGreaterThan(50)
    expect(lines.filter((line) => line.includes('a fault of the hub'))).toHaveLength(1)
    for (const line of lines) {
      expect(line).not.toMatch(new RegExp(`${canary}|${base64}|hft_|authorization"|bearer|\\?note`, 'i'))
    }
  })
})

const clientKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgooZyt3D9KnVwtdA5
jpOHMuwdQiwHeAQO2ws/lT8TicOhRANCAASNY/Swxg3olLwUFCw3WkEbS6MFgL/f
pE/nDGJPhzP399c01csUTWgnaqvHPxmsvcRpdr3C1jZE2C9U2Q3dMnLl
-----END PRIVATE KEY-----
`

/** A client's certificate, signed by itself, 2020 to 2120. Like its key it protects nothing. */
const pinned: ClientCertificate = {
  key: clientKey,
  cert: `-----BEGIN CERTIFICATE-----
MIIBCDCBrgIBAzAKBggqhkjOPQQDAjAPMQ0wCwYDVQQDDARub2RlMCAXDTIwMDEw
MTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAPMQ0wCwYDVQQDDARub2RlMFkwEwYH
KoZIzj0CAQYIKoZIzj0DAQcDQgAEjWP0sMYN6JS8FBQsN1pBG0ujBYC/36RP5wxi
T4cz9/fXNNXLFE1oJ2qrxz8ZrL3EaXa9wtY2RNgvVNkN3TJy5TAKBggqhkjOPQQD
AgNJADBGAiEAtgPPjOJuPU0rKPEH7qOGmYoYv2gm6Rz7S0kOSOnhLUUCIQDV38ot
lWE2IanVNXyyZ+e3ov16r4wVCmRxJ1iN3PbF+g==
-----END CERTIFICATE-----
`,
}

/** The same until the end of 2020. */
const expired: ClientCertificate = {
  key: clientKey,
  cert: `-----BEGIN CERTIFICATE-----
MIIBCzCBsgIBAjAKBggqhkjOPQQDAjASMRAwDgYDVQQDDAdleHBpcmVkMB4XDTIw
MDEwMTAwMDAwMFoXDTIxMDEwMTAwMDAwMFowEjEQMA4GA1UEAwwHZXhwaXJlZDBZ
MBMGByqGSM49AgEGCCqGSM49AwEHA0IABI1j9LDGDeiUvBQULDdaQRtLowWAv9+k
T+cMYk+HM/f31zTVyxRNaCdqq8c/Gay9xGl2vcLWNkTYL1TZDd0ycuUwCgYIKoZI
zj0EAwIDSAAwRQIgcJOYhjH9Oh54qqZlDU/kwiAfMsONo1KQCv1D05NFAwcCIQDH
/O3rZ7IttVCWYjvR99ceOF7JcpDEkUDtQXuvbVkmWQ==
-----END CERTIFICATE-----
`,
}
