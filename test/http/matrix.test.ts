import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { messageOf } from '../../src/contract/ids.js'
import {
  type Answer,
  type Asked,
  call,
  openStream,
  startHubServer,
  type TestHubServer,
} from '../support/http.js'
import { type Dump, type OpenRecord, openRecord, type TestNode } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// Every route under every identity. What is refused must leave every key of the record as it was; what is allowed
// must succeed, so that a refusal is never one for another reason.

const identities = [
  'nobody',
  'unknown token',
  'revoked token',
  'producer',
  'node',
  'node of another host',
  'operator',
  'viewer',
] as const
type Identity = (typeof identities)[number]

const unauthenticated: readonly Identity[] = ['nobody', 'unknown token', 'revoked token']

/** Who may call a route. Operators may call every one. */
const may = {
  everyone: identities,
  operators: ['operator'],
  readers: ['operator', 'viewer'],
  producers: ['operator', 'producer'],
  nodes: ['operator', 'node'],
  messages: ['operator', 'producer', 'viewer'],
  hosts: ['operator', 'viewer', 'node'],
  effects: ['operator', 'producer', 'node', 'node of another host'],
} as const satisfies Record<string, readonly Identity[]>

/** A call that succeeds once where it is allowed, and how its answer shows that. */
type Prepared = Omit<Asked, 'method' | 'token'> & { readonly shows?: object | undefined }

const sessionOpening = { host: 'a', scope: '/srv/a' }
const payloadHash = 'a'.repeat(64)
let effects = 0

/** An effect that is executing at epoch 1, under grant g1 of executor e1. */
async function effect(): Promise<string> {
  effects += 1
  const id = `effect-${effects}`
  await record.functions.claimEffect(id, { type: 'charge', payloadHash, executor: 'e1', grant: 'g1' })
  return id
}

/** An open session of host `a`, in the directory that its node is authorised for. */
async function session(): Promise<{ readonly id: string; readonly epoch: number }> {
  made += 1
  const id = `session-${made}`
  const { epoch } = await server.hub.openSession(id, sessionOpening, 'tests')
  return { id, epoch }
}

interface Row {
  readonly may: readonly Identity[]
  /** 200 when absent. */
  readonly status?: number
  readonly streams?: true
  /** Makes in the record what the call is about. */
  prepare(): Promise<Prepared> | Prepared
}

const secrets = {
  payload: 'canary-payload-5e1f',
  token: 'hft_canary-token-91c7',
  query: 'canary-query-40aa',
  result: 'canary-result-77d0',
}
const payload = JSON.stringify({ note: secrets.payload })
const tokens: Partial<Record<Identity, string>> = { 'unknown token': secrets.token }
const problems: string[] = []

let redis: TestServer
let record: OpenRecord
let server: TestHubServer
let n1: TestNode
let made = 0

beforeAll(async () => {
  redis = await startTestServer()
  record = await openRecord(redis, { name: 'matrix' })
  await record.config('stale_after_ms', 600_000)
  server = await startHubServer(record)
  const principals = [
    ['operator', { name: 'kim', role: 'operator' }],
    ['viewer', { name: 'vera', role: 'viewer' }],
    ['producer', { name: 'billing', role: 'producer' }],
    ['node', { name: 'node-a', role: 'node', host: 'a', scopes: ['/srv/a'] }],
    ['node of another host', { name: 'node-b', role: 'node', host: 'b' }],
    ['revoked token', { name: 'gone', role: 'operator' }],
  ] as const
  for (const [identity, input] of principals) {
    tokens[identity] = (await server.hub.addPrincipal(input, 'tests')).token ?? ''
  }
  await call(server.url, {
    method: 'POST',
    path: '/v1/principals/gone/revoke',
    token: tokens.operator,
    body: { reason: 'left' },
  })
  n1 = await record.join('a', 'n1')
})
afterAll(async () => {
  await server?.close()
  await record?.checkInvariants()
  await record?.close()
  await redis?.stop()
})

interface Fixture {
  readonly message: string
  readonly id: string
  readonly epoch: number
  readonly conversation: string
}

/** A delivery to host `a` in a conversation of its own, taken as far as this. */
async function delivery(stage: 'queued' | 'claimed' | 'mirrored' | 'delivered' | 'held'): Promise<Fixture> {
  made += 1
  const conversation = `c-${made}`
  const [id = ''] = await record.acceptMany(1, {
    conversation,
    sender: 'billing',
    payload,
    contentType: 'application/json',
  })
  const about = { message: messageOf(id), id, conversation }
  if (stage === 'queued') return { ...about, epoch: 0 }
  const claimed = (await record.claimAll(n1)).find((each) => each.id === id)
  const item = { id, epoch: claimed?.epoch ?? 0 }
  if (stage !== 'claimed') await record.functions.mirror(n1, [item])
  if (stage === 'delivered' || stage === 'held') await record.functions.ack(n1, [item])
  if (stage === 'held') await record.functions.holdDelivery(id, 'tests', 'for a look')
  return { ...about, epoch: item.epoch }
}

const speaker = { node: 'n1', incarnation: 1 }
const reason = { reason: 'because' }
const oneDone = { results: [{ ok: true }] }

function read(path: string, who: readonly Identity[], shows?: object): Row {
  return { may: who, prepare: () => ({ path, shows }) }
}

function readDelivery(below: string): Row {
  return {
    may: may.hosts,
    prepare: async () => {
      const { id } = await delivery('queued')
      return { path: `/v1/deliveries/${id}${below}`, shows: { id, host: 'a' } }
    },
  }
}

function act(verb: string, from: 'delivered' | 'held', to: string): Record<string, Row> {
  return {
    [`POST /v1/deliveries/{id}/${verb}`]: {
      may: may.operators,
      prepare: async () => {
        const { id } = await delivery(from)
        return { path: `/v1/deliveries/${id}/${verb}`, body: reason, shows: { id, state: to } }
      },
    },
    [`POST /v1/deliveries/${verb}`]: {
      may: may.operators,
      prepare: async () => {
        const { conversation } = await delivery(from)
        const filter = { state: from, host: 'a', conversation }
        return {
          path: `/v1/deliveries/${verb}`,
          body: { filter, ...reason },
          shows: { done: 1, refused: [] },
        }
      },
    },
  }
}

function step(
  verb: string,
  from: 'claimed' | 'mirrored' | 'delivered',
  more: Record<string, unknown> = {},
): Row {
  return {
    may: may.nodes,
    prepare: async () => {
      const { id, epoch } = await delivery(from)
      const body = { ...speaker, items: [{ id, epoch, ...more }] }
      return { path: `/v1/hosts/a/${verb}`, body, shows: oneDone }
    },
  }
}

function nodePath(node: string): string {
  return `/v1/hosts/a/nodes/${node}`
}

const key = () => {
  made += 1
  return { 'idempotency-key': `key-of-call-${made}` }
}

const table: Readonly<Record<string, Row>> = {
  'POST /v1/messages': {
    may: may.producers,
    status: 201,
    prepare: () => ({
      path: '/v1/messages',
      headers: key(),
      body: `{"conversation":"c","to":[{"host":"a"}],"payload":${payload}}`,
      shows: { deliveries: [{ host: 'a', state: 'queued' }] },
    }),
  },
  'POST /v1/messages/{id}/resend': {
    may: may.producers,
    status: 201,
    prepare: async () => ({
      path: `/v1/messages/${(await delivery('queued')).message}/resend`,
      headers: key(),
      body: {},
      shows: { deliveries: [{ host: 'a' }] },
    }),
  },
  'GET /v1/messages': read('/v1/messages', may.messages, { messages: expect.any(Array) }),
  'GET /v1/messages/{id}/payload': {
    may: may.producers,
    prepare: async () => ({ path: `/v1/messages/${(await delivery('queued')).message}/payload` }),
  },
  'GET /v1/messages/{id}': {
    may: may.messages,
    prepare: async () => {
      const { message } = await delivery('queued')
      return { path: `/v1/messages/${message}`, shows: { id: message, sender: 'billing' } }
    },
  },

  'GET /v1/deliveries': read('/v1/deliveries?host=a&state=held', may.hosts, { deliveries: [] }),
  'GET /v1/deliveries/{id}': readDelivery(''),
  'GET /v1/deliveries/{id}/why': readDelivery('/why'),
  'GET /v1/held': read('/v1/held', may.readers, { held: [] }),
  'GET /v1/unknown': read('/v1/unknown', may.readers, { unknown: [] }),
  ...act('release', 'held', 'queued'),
  ...act('reject', 'held', 'failed'),
  ...act('hold', 'delivered', 'held'),
  ...act('cancel', 'delivered', 'failed'),

  'GET /v1/effects': read('/v1/effects', may.readers, { effects: [] }),
  'GET /v1/effects/{id}': {
    may: may.readers,
    prepare: async () => {
      const id = await effect()
      return { path: `/v1/effects/${id}`, shows: { id, status: 'executing' } }
    },
  },
  'POST /v1/effects/{id}/claim': {
    may: may.effects,
    prepare: () => ({
      path: '/v1/effects/fresh/claim',
      body: { type: 'charge', payloadHash, executor: 'e1', grant: 'g1' },
      shows: { kind: 'claimed' },
    }),
  },
  'POST /v1/effects/{id}/take-over': {
    may: may.effects,
    prepare: async () => {
      const id = await effect()
      await record.send('HSET', record.keys.effect(id), 'started_at', 1000)
      const body = { payloadHash, executor: 'e2', grant: 'g2', basis: 'probe', epoch: 1, startedAt: 1000 }
      return { path: `/v1/effects/${id}/take-over`, body, shows: { kind: 'claimed', epoch: 2 } }
    },
  },
  'POST /v1/effects/{id}/settle': {
    may: may.effects,
    prepare: async () => {
      const body = `{"executor":"e1","grant":"g1","epoch":1,"outcome":{"kind":"result","result":"${secrets.result}"}}`
      return {
        path: `/v1/effects/${await effect()}/settle`,
        body,
        shows: { kind: 'settled', status: 'done' },
      }
    },
  },
  'POST /v1/effects/{id}/resolve': {
    may: may.operators,
    prepare: async () => {
      const body = { as: 'not_sent', evidence: 'the log of the target', force: true }
      return { path: `/v1/effects/${await effect()}/resolve`, body, shows: { status: 'free' } }
    },
  },

  'GET /v1/sessions': read('/v1/sessions', may.readers, { sessions: expect.arrayContaining([]) }),
  'GET /v1/sessions/{id}': {
    may: may.hosts,
    prepare: async () => {
      const { id } = await session()
      return { path: `/v1/sessions/${id}`, shows: { session: id, state: 'open' } }
    },
  },
  'PUT /v1/sessions/{id}': {
    may: may.nodes,
    prepare: () => {
      made += 1
      return { path: `/v1/sessions/opens-${made}`, body: sessionOpening, shows: { state: 'open' } }
    },
  },
  'POST /v1/sessions/{id}/close': {
    may: may.nodes,
    prepare: async () => {
      const { id, epoch } = await session()
      const body = { epoch, reason: 'restart', drained: true, abandoned: 0, terminal: false }
      return { path: `/v1/sessions/${id}/close`, body, shows: { state: 'closed', terminal: false } }
    },
  },
  'POST /v1/sessions/{id}/rehome': {
    may: may.operators,
    prepare: async () => {
      const { id } = await session()
      await record.functions.join({ host: 'c', node: 'n3', incarnation: 1 }, 'i1', ['/srv/a'], '0-0')
      return { path: `/v1/sessions/${id}/rehome`, body: { host: 'c', ...reason }, shows: { host: 'c' } }
    },
  },
  'POST /v1/attempts/{id}/resolve': {
    may: may.operators,
    prepare: async () => {
      const { id, epoch } = await delivery('delivered')
      const { attempt } = await record.begin(n1, { id, epoch })
      const body = { as: 'result', evidence: 'the target says so', force: true, result: secrets.result }
      return {
        path: `/v1/attempts/${encodeURIComponent(attempt)}/resolve`,
        body,
        shows: { id: attempt, outcome: 'result' },
      }
    },
  },
  'POST /v1/deliveries/{id}/resolve': {
    may: may.operators,
    prepare: async () => {
      const { id, epoch } = await delivery('claimed')
      await record.functions.refuse(n1, [{ id, epoch, verdict: 'unknown', reason: 'copy_in_doubt' }])
      const body = { as: 'failed', evidence: 'the disk is gone' }
      return { path: `/v1/deliveries/${id}/resolve`, body, shows: { id, state: 'failed' } }
    },
  },

  'GET /v1/fences': read('/v1/fences', may.readers, { fences: [] }),
  'PUT /v1/fences/{kind}/{scope}': {
    may: may.operators,
    prepare: () => ({ path: '/v1/fences/pause/conversation%3Aother', body: reason }),
  },
  'DELETE /v1/fences/{kind}/{scope}': {
    may: may.operators,
    prepare: async () => {
      await record.functions.pause('conversation:other', 'because', 'tests')
      return { path: '/v1/fences/pause/conversation%3Aother' }
    },
  },

  'GET /v1/hosts': read('/v1/hosts', may.readers, { hosts: expect.arrayContaining([]) }),
  'GET /v1/hosts/{host}': read('/v1/hosts/a', may.hosts, { host: 'a' }),
  'GET /v1/hosts/{host}/pending': read('/v1/hosts/a/pending', may.hosts, {
    pending: expect.arrayContaining([]),
  }),
  'GET /v1/counts': read('/v1/counts', may.readers),
  'GET /v1/overview': read('/v1/overview', may.readers, { nodes: expect.any(Object) }),
  'GET /v1/history': read('/v1/history', may.readers, { everyMs: 5000 }),
  'POST /v1/hosts/{host}/drain': {
    may: may.operators,
    prepare: () => ({ path: '/v1/hosts/drained/drain', body: {} }),
  },
  'POST /v1/hosts/{host}/retire': {
    may: may.operators,
    prepare: async () => {
      made += 1
      const host = `retired-${made}`
      await record.accept({ to: [{ host }] })
      return { path: `/v1/hosts/${host}/retire`, body: reason, shows: { host } }
    },
  },

  'GET /v1/config': read('/v1/config', may.readers, { settings: expect.arrayContaining([]) }),
  'PUT /v1/config': {
    may: may.operators,
    prepare: () => ({ path: '/v1/config', body: { max_redrive: 9 } }),
  },
  'GET /v1/principals': read('/v1/principals', may.operators),
  'GET /v1/principals/{name}': read('/v1/principals/kim', may.operators),
  'POST /v1/principals': {
    may: may.operators,
    status: 201,
    prepare: () => {
      made += 1
      return {
        path: '/v1/principals',
        body: { name: `new-${made}`, role: 'viewer' },
        shows: { token: expect.stringMatching(/^hft_/) },
      }
    },
  },
  'POST /v1/principals/{name}/revoke': {
    may: may.operators,
    prepare: async () => {
      made += 1
      const name = `short-lived-${made}`
      await server.hub.addPrincipal({ name, role: 'viewer' }, 'tests')
      return { path: `/v1/principals/${name}/revoke`, body: reason, shows: { principal: { name } } }
    },
  },

  'POST /v1/hosts/{host}/nodes/{node}': {
    may: may.nodes,
    prepare: () => {
      made += 1
      const body = { incarnation: 1, instance: 'i', scopes: ['/srv/a'] }
      return { path: nodePath(`joins-${made}`), body, shows: { now: expect.any(Number) } }
    },
  },
  'PUT /v1/hosts/{host}/nodes/{node}': {
    may: may.nodes,
    prepare: () => ({ path: nodePath('n1'), body: { incarnation: 1 }, shows: { now: expect.any(Number) } }),
  },
  'DELETE /v1/hosts/{host}/nodes/{node}': {
    may: may.nodes,
    status: 204,
    prepare: async () => {
      made += 1
      await record.join('a', `leaves-${made}`)
      return { path: `${nodePath(`leaves-${made}`)}?incarnation=1` }
    },
  },
  'POST /v1/hosts/{host}/claim': {
    may: may.nodes,
    prepare: async () => {
      await record.claimAll(n1)
      const { id } = await delivery('queued')
      n1.request += 1
      const body = { ...speaker, request: n1.request, count: 1 }
      const message = { sender: 'billing', payload: JSON.parse(payload) }
      return { path: '/v1/hosts/a/claim', body, shows: { deliveries: [{ id, message }] } }
    },
  },
  'POST /v1/hosts/{host}/mirror': step('mirror', 'claimed'),
  'POST /v1/hosts/{host}/ack': step('ack', 'mirrored'),
  'POST /v1/hosts/{host}/refuse': step('refuse', 'claimed', { verdict: 'failed', reason: 'no_room' }),
  'POST /v1/hosts/{host}/begin': step('begin', 'delivered', { grant: 'g' }),
  'POST /delivery-report': {
    may: may.nodes,
    prepare: async () => {
      const { id, epoch } = await delivery('delivered')
      const { attempt, grant } = await record.begin(n1, { id, epoch })
      const outcome = { kind: 'result', result: { note: secrets.result } }
      const reports = [{ attempt, grant, key: `report-${id}`, outcome }]
      return { path: '/delivery-report', body: { host: 'a', ...speaker, reports }, shows: oneDone }
    },
  },

  'GET /v1/sweeps': read('/v1/sweeps', may.readers, { sweeps: expect.any(Array) }),
  'POST /v1/sweeps/{name}/run': {
    may: may.operators,
    prepare: () => ({ path: '/v1/sweeps/claims/run', shows: { runs: [{ name: 'claims', left: 0 }] } }),
  },
  'GET /v1/audit': read('/v1/audit', may.readers, { disagreements: [] }),

  'GET /v1/log': read('/v1/log?limit=3', may.readers, { entries: expect.any(Array) }),
  'GET /v1/events': { may: may.readers, streams: true, prepare: () => ({ path: '/v1/events' }) },
  'GET /v1/me': read('/v1/me', ['operator', 'viewer', 'producer', 'node', 'node of another host'], {
    hub: 'matrix',
    anonymous: false,
  }),
  'POST /v1/login': {
    may: may.everyone,
    prepare: () => ({ path: '/v1/login', body: { token: tokens.viewer }, shows: { name: 'vera' } }),
  },
  'POST /v1/logout': { may: may.everyone, status: 204, prepare: () => ({ path: '/v1/logout' }) },
  'GET /livez': read('/livez', may.everyone),
  'GET /readyz': read('/readyz', may.everyone, { ready: true }),
  'GET /metrics': read('/metrics', may.readers),
  'GET /openapi.json': read('/openapi.json', may.everyone, { openapi: '3.1.0' }),
  'GET /docs': read('/docs', may.everyone),
  'GET /': read('/', may.everyone),
}

/** Routes that the description may leave out. */
const undescribed = ['GET /openapi.json', 'GET /docs', 'GET /']

it('has a row for every route that the server describes', async () => {
  const { json } = await call<{ paths: Record<string, Record<string, unknown>> }>(server.url, {
    path: '/openapi.json',
  })
  const described = Object.entries(json.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect(described.length).toBeGreaterThan(30)
  expect(Object.keys(table).toSorted()).toEqual([...new Set([...described, ...undescribed])].toSorted())
})

const methodOf = (route: string) => route.slice(0, route.indexOf(' '))

describe.each(Object.entries(table))('%s', (route, row) => {
  const method = methodOf(route)
  const refused = identities.filter((identity) => !row.may.includes(identity))
  let prepared: Prepared
  let before: Dump

  if (refused.length > 0) {
    beforeAll(async () => {
      prepared = await row.prepare()
      before = await record.dump()
    })
  }

  it.each(refused)('refuses: %s', async (identity) => {
    const asked = { ...prepared, method, token: tokens[identity] }
    const answer = await call(server.url, asked)
    problems.push(answer.text)
    if (unauthenticated.includes(identity)) expectUnauthenticated(answer)
    else expectProblem(answer, 403, 'FORBIDDEN')
    if (method === 'GET') {
      expect(await call(server.url, { ...asked, method: 'HEAD' })).toMatchObject({
        status: answer.status,
        text: '',
      })
    }
    expectSame(await record.dump(), before)
  })

  it.each(row.may)('serves: %s', async (identity) => {
    const { shows, ...asked } = await row.prepare()
    const request = { ...asked, method, token: tokens[identity] }
    if (row.streams) {
      const startedAt = performance.now()
      const stream = await openStream(server.url, request)
      await stream.close()
      expect(stream.status).toBe(200)
      // Its head does not wait for an event, or for the heartbeat.
      expect(performance.now() - startedAt).toBeLessThan(5000)
      return
    }
    const answer = await call(server.url, request)
    expect(answer.status, answer.text).toBe(row.status ?? 200)
    if (shows !== undefined) expect(answer.json).toMatchObject(shows)
  })
})

function expectProblem(answer: Answer, status: number, code: string): void {
  expect(answer.json, answer.text).toMatchObject({
    status,
    code,
    detail: expect.stringMatching(/./),
    next: expect.stringMatching(/./),
  })
  expect(answer.status).toBe(status)
  expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/)
}

function expectUnauthenticated(answer: Answer): void {
  expectProblem(answer, 401, 'UNAUTHENTICATED')
  expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer /)
}

/** Compared as text first: telling large objects apart takes long, and here they are the same. */
function expectSame(now: Dump, before: Dump): void {
  if (JSON.stringify(now) !== JSON.stringify(before)) expect(now).toEqual(before)
}

describe('within a route', () => {
  /** The call must be refused with this code, and leave the record as it was. */
  async function refused(identity: Identity, asked: Asked, code = 'FORBIDDEN'): Promise<void> {
    const before = await record.dump()
    const answer = await call(server.url, { ...asked, token: tokens[identity] })
    problems.push(answer.text)
    expectProblem(answer, 403, code)
    expectSame(await record.dump(), before)
  }

  async function served(identity: Identity, asked: Asked, status = 200): Promise<Answer> {
    const answer = await call(server.url, { ...asked, token: tokens[identity] })
    expect(answer.status, answer.text).toBe(status)
    return answer
  }

  /** A delivery to host `b`. */
  async function elsewhere(): Promise<string> {
    const [id = ''] = await record.acceptMany(1, { to: [{ host: 'b' }] })
    return id
  }

  it('a node lists deliveries of its own host alone, and names it', async () => {
    await refused('node', { path: '/v1/deliveries' })
    await refused('node', { path: '/v1/deliveries?state=queued' })
    await refused('node', { path: '/v1/deliveries?host=b' })
    await served('node', { path: '/v1/deliveries?host=a' })
    await served('viewer', { path: '/v1/deliveries' })
  })

  it('a node does not see a delivery of another host by its id', async () => {
    const id = await elsewhere()
    await refused('node', { path: `/v1/deliveries/${id}` })
    await refused('node', { path: `/v1/deliveries/${id}/why` })
    await served('node of another host', { path: `/v1/deliveries/${id}` })
    await served('node of another host', { path: `/v1/deliveries/${id}/why` })
  })

  it('a report names its host in the body: it must be that of the principal', async () => {
    const outcome = { kind: 'result', result: 1 }
    const { id, epoch } = await delivery('delivered')
    const { attempt, grant } = await record.begin(n1, { id, epoch })
    const body = { host: 'a', ...speaker, reports: [{ attempt, grant, key: `report-${id}`, outcome }] }
    await refused('node of another host', { method: 'POST', path: '/delivery-report', body })
    // Under its own host it is another node, whose grant this is not.
    const before = await record.fields(id)
    await record.join('b', 'n1')
    const mine = { ...body, host: 'b' }
    const { json } = await served('node of another host', {
      method: 'POST',
      path: '/delivery-report',
      body: mine,
    })
    expect(json).toMatchObject({ results: [{ ok: false, code: 'NOT_OWNER' }] })
    expect(await record.fields(id)).toEqual(before)
    await served('node', { method: 'POST', path: '/delivery-report', body })
  })

  it('a node takes no step on deliveries of another host under the path of its own', async () => {
    await record.join('b', 'n2')
    const { id, epoch } = await delivery('claimed')
    const before = await record.fields(id)
    const items = {
      mirror: { id, epoch },
      ack: { id, epoch },
      refuse: { id, epoch, verdict: 'failed', reason: 'no_room' },
      begin: { id, epoch, grant: 'g' },
    }
    for (const [verb, item] of Object.entries(items)) {
      const body = { node: 'n2', incarnation: 1, items: [item] }
      const { json } = await served('node of another host', {
        method: 'POST',
        path: `/v1/hosts/b/${verb}`,
        body,
      })
      expect(json, verb).toMatchObject({ results: [{ ok: false, code: 'NOT_OWNER' }] })
    }
    expect(await record.fields(id)).toEqual(before)
  })

  it('a node joins with the scopes of its principal alone', async () => {
    const join = (...scopes: string[]) => ({
      method: 'POST',
      path: nodePath('scoped'),
      body: { incarnation: 1, instance: 'i', scopes },
    })
    await refused('node', join('/srv/b'), 'SCOPE_NOT_AUTHORISED')
    await refused('node', join('/srv/a', '/srv/a/below'), 'SCOPE_NOT_AUTHORISED')
    await refused('node', join('/srv'), 'SCOPE_NOT_AUTHORISED')
    await served('node', join('/srv/a'))
  })

  it('a node knows sessions of its own host and of the scopes of its principal alone', async () => {
    const close = (epoch: number) => ({
      epoch,
      reason: 'restart',
      drained: true,
      abandoned: 0,
      terminal: false,
    })
    const open = (id: string, scope: string, host = 'a') => ({
      method: 'PUT',
      path: `/v1/sessions/${id}`,
      body: { host, scope },
    })
    const elsewhere = await server.hub.openSession('of b', { host: 'b', scope: '/srv/a' }, 'tests')
    const foreign = await server.hub.openSession('of a scope', { host: 'a', scope: '/srv/a/below' }, 'tests')
    const of = (id: string, verb = '') => `/v1/sessions/${encodeURIComponent(id)}${verb}`
    await refused('node', { path: of('of b') })
    await refused('node', { method: 'POST', path: of('of b', '/close'), body: close(elsewhere.epoch) })
    await refused('node', open('fresh', '/srv/a', 'b'))
    const code = 'SCOPE_NOT_AUTHORISED'
    await refused('node', { path: of('of a scope') }, code)
    await refused(
      'node',
      { method: 'POST', path: of('of a scope', '/close'), body: close(foreign.epoch) },
      code,
    )
    await refused('node', open('fresh', '/srv/a/below'), code)
    await refused('node', open('fresh', '/srv'), code)
    await served('node', open('fresh', '/srv/a'))
    await served('viewer', { path: of('of b') })
  })

  it('a producer sees, waits for and resends its own messages alone', async () => {
    const other = (await record.accept({ sender: 'sales' })).id
    const own = (await record.accept({ sender: 'billing' })).id
    const resend = (id: string) => ({
      method: 'POST',
      path: `/v1/messages/${id}/resend`,
      headers: key(),
      body: {},
    })
    await refused('producer', { path: `/v1/messages/${other}` })
    await refused('producer', { path: `/v1/messages/${other}?waitMs=60000` })
    await refused('producer', resend(other))
    await served('producer', { path: `/v1/messages/${own}?waitMs=1` })
    await served('producer', resend(own), 201)
    await served('viewer', { path: `/v1/messages/${other}` })
  })

  it('a producer sends as itself, unless its principal may name any sender', async () => {
    const { token = '' } = await server.hub.addPrincipal(
      { name: 'relay', role: 'producer', anySender: true },
      'tests',
    )
    const send = (sender?: string) => ({
      method: 'POST',
      path: '/v1/messages',
      headers: key(),
      body: {
        conversation: 'c',
        to: [{ host: 'a' }],
        payload: 1,
        ...(sender === undefined ? {} : { sender }),
      },
    })
    await refused('producer', send('sales'))
    await served('producer', send('billing'), 201)
    const { json } = await call<{ id: string }>(server.url, { ...send('sales'), token })
    expect(await server.hub.message(json.id)).toMatchObject({ sender: 'sales' })
    expect((await call(server.url, { path: `/v1/messages/${json.id}`, token })).status).toBe(200)
  })

  it('a key that another sender used answers nothing about its message', async () => {
    const headers = key()
    await record.accept({ key: headers['idempotency-key'], sender: 'sales', conversation: 'c', payload: '1' })
    const before = await record.dump()
    const answer = await call(server.url, {
      method: 'POST',
      path: '/v1/messages',
      headers,
      token: tokens.producer,
      body: { conversation: 'c', to: [{ host: 'a' }], payload: 1 },
    })
    problems.push(answer.text)
    expect(answer.json).toMatchObject({ status: 422, code: 'IDEMPOTENCY_MISMATCH' })
    expectSame(await record.dump(), before)
  })

  it('the pages of /docs are served to everyone, over plain HTTP too', async () => {
    const page = await call(server.url, { path: '/docs' })
    expect(page.headers.get('content-security-policy')).not.toContain('upgrade-insecure-requests')
    const [, script] = /src="([^"]+swagger-initializer\.js)"/.exec(page.text) ?? []
    for (const path of [new URL(script ?? '', `${server.url}/docs/`).pathname, '/docs/json', '/docs/yaml']) {
      expect(await call(server.url, { path }), path).toMatchObject({ status: 200 })
    }
  })

  it('no method but its own reaches a route, and no spelling of its path goes past the check', async () => {
    const before = await record.dump()
    const spellings = ['/v1/held/', '//v1/held', '/V1/held', '/v1/%68eld', '/v1/held?a', '/v1/./held']
    for (const path of spellings) {
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE']) {
        const { status } = await call(server.url, { method, path })
        expect([401, 404, 405], `${method} ${path}`).toContain(status)
      }
    }
    expectSame(await record.dump(), before)
  })
})

it('nothing secret came into the log or into a problem', async () => {
  const token = tokens.operator
  const odd = [
    { path: `/v1/held?secret=${secrets.query}` },
    { path: `/v1/nothing?secret=${secrets.query}` },
    { path: `/v1/messages/1-1?waitMs=${secrets.query}` },
    { method: 'POST', path: `/v1/held?secret=${secrets.query}`, body: { payload: secrets.payload } },
  ]
  for (const asked of odd) problems.push((await call(server.url, { ...asked, token })).text)
  const lines = server.lines.join('')
  expect(lines).toContain('"answered"')
  expect(server.lines.some((line) => String(JSON.parse(line).path ?? '').includes('?'))).toBe(false)
  const words = [
    ...Object.values(secrets),
    ...Object.values(secrets).map((secret) => Buffer.from(secret).toString('base64')),
    Buffer.from(payload).toString('base64'),
    ...Object.values(tokens),
  ]
  for (const text of [lines, problems.join('\n')]) {
    for (const word of words) expect(text).not.toContain(word)
    expect(text).not.toMatch(/authorization"|bearer [^<]|hft_/i)
  }
})
