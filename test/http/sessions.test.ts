import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Client, openClient } from '../../src/client/open-client.js'
import type { DeliveryView } from '../../src/contract/delivery-views.js'
import { errorCatalogue, isErrorCode } from '../../src/contract/errors.js'
import type { PrincipalInput } from '../../src/contract/hub.js'
import type { SessionReply, SessionView } from '../../src/contract/session-views.js'
import type { SessionClosing } from '../../src/contract/sessions.js'
import type { StepResult } from '../../src/contract/steps.js'
import { type Answer, call, startHubServer, type TestHubServer } from '../support/http.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// Sessions and resolutions through a hub over HTTP: by single requests as any program sends them, and by the client.

let server: TestServer
let record: TestRecord
let hub: TestHubServer
let kim: Client
const tokens: Record<string, string> = {}
const clients: Client[] = []

const principals: readonly PrincipalInput[] = [
  { name: 'kim', role: 'operator' },
  { name: 'a', role: 'node', host: 'a', scopes: ['/srv/a'] },
  { name: 'b', role: 'node', host: 'b', scopes: ['/srv/a', '/srv/b'] },
  { name: 'c', role: 'node', host: 'c', scopes: ['/srv/c'] },
]

beforeAll(async () => {
  server = await startTestServer()
  // Nodes of this test send no heartbeats.
  record = await makeRecord(server, 'http-sessions', { stale_after_ms: 600_000 })
  hub = await startHubServer(record)
  for (const principal of principals) {
    tokens[principal.name] = (await record.hub.addPrincipal(principal, 'tests')).token ?? ''
  }
  kim = clientOf('kim')
})
afterAll(async () => {
  for (const client of clients) await client.close()
  await hub?.close()
  await record?.checkInvariants()
  await record?.close()
  await server?.stop()
})

function clientOf(name: string): Client {
  const client = openClient({ url: hub.url, token: tokens[name], actor: 'somebody else' })
  clients.push(client)
  return client
}

/** One request of a principal. */
function ask<Body>(who: string, method: string, path: string, body?: unknown): Promise<Answer<Body>> {
  return call<Body>(hub.url, { method, path, body, token: tokens[who] })
}

/** One request that must be answered with 200. */
async function done<Body = unknown>(who: string, method: string, path: string, body?: unknown) {
  const { status, text, json } = await ask<Body>(who, method, path, body)
  expect(status, text).toBe(200)
  return json
}

/** One request that must be refused with this code, and change nothing. */
async function refused(code: string, who: string, method: string, path: string, body?: unknown) {
  const before = await record.dump()
  const { status, text, json } = await ask<Record<string, unknown>>(who, method, path, body)
  expect(json?.['code'], text).toBe(code)
  expect(status).toBe(isErrorCode(code) ? errorCatalogue[code].status : 0)
  expect(await record.dump()).toEqual(before)
  return json
}

const pathOf = (id: string, verb = '') => `/v1/sessions/${encodeURIComponent(id)}${verb}`
const open = (id: string, more: object = {}, who = 'kim') =>
  done<SessionReply>(who, 'PUT', pathOf(id), { host: 'a', scope: '/srv/a', ...more })
const show = (id: string) => done<SessionView>('kim', 'GET', pathOf(id))
const closing = (epoch: number, more: Partial<SessionClosing> = {}) => {
  return { epoch, reason: 'restart', drained: true, abandoned: 0, terminal: false, ...more }
}
const close = (id: string, epoch: number, more: Partial<SessionClosing> = {}, who = 'kim') =>
  done<SessionReply>(who, 'POST', pathOf(id, '/close'), closing(epoch, more))
const crash = { reason: 'crash', terminal: undefined } as const
const rehome = (id: string, host: string) =>
  done<SessionReply>('kim', 'POST', pathOf(id, '/rehome'), { host, reason: 'a new machine' })

interface Claimed {
  readonly id: string
  readonly epoch: number
  readonly sessionEpoch?: number
}

/** Results of steps as they go over the wire: the attempt is named whole, and `replay` says what is replayed. */
type WireResult = Omit<StepResult & { ok: true }, 'attempt'> & {
  readonly attempt?: string
  readonly replay?: boolean
  readonly code?: string
}

/** A process of a node that speaks HTTP under the principal of its host. */
async function joined(host: string, scopes: readonly string[], incarnation = 1) {
  const who = { node: `n-${host}`, incarnation }
  let request = 0
  const step = async (verb: string, items: readonly object[]) => {
    const body = { ...who, items }
    const reply = await done<{ results: WireResult[] }>(host, 'POST', `/v1/hosts/${host}/${verb}`, body)
    return reply.results
  }
  const claim = async () => {
    const found: Claimed[] = []
    for (let more = true; more; ) {
      request += 1
      const body = { ...who, request, count: 100 }
      const reply = await done<{ more: boolean; deliveries: Claimed[] }>(
        host,
        'POST',
        `/v1/hosts/${host}/claim`,
        body,
      )
      found.push(...reply.deliveries)
      more = reply.more
    }
    return found
  }
  const begun = async (grant: string) => {
    const [item] = (await claim()).map(({ id, epoch }) => ({ id, epoch }))
    if (item === undefined) throw new Error('there was nothing to claim')
    await step('mirror', [item])
    await step('ack', [item])
    const [result] = await step('begin', [{ ...item, grant }])
    expect(result).toMatchObject({ ok: true, attempt: `${item.id}/1` })
    return { ...item, grant, attempt: result?.attempt ?? '' }
  }
  const report = async (attempt: string, grant: string, outcome: object, more: object = {}) => {
    const reports = [{ attempt, grant, key: `report of ${attempt}`.replaceAll(' ', '-'), outcome, ...more }]
    const reply = await done<{ results: WireResult[] }>(host, 'POST', '/delivery-report', {
      host,
      ...who,
      reports,
    })
    return reply.results[0]
  }
  await done(host, 'POST', `/v1/hosts/${host}/nodes/${who.node}`, { incarnation, instance: 'i', scopes })
  return { step, claim, begun, report }
}

async function send(session: string): Promise<string> {
  const { deliveries } = await record.accept({ to: [{ session }], conversation: `about ${session}` })
  return deliveries[0]?.id ?? ''
}

describe('a session', () => {
  it('never seen, open, closed and missing are different answers', async () => {
    const id = 'its four/answers'
    await refused('SESSION_NOT_FOUND', 'kim', 'GET', pathOf(id))
    await refused('SESSION_NOT_FOUND', 'kim', 'POST', pathOf(id, '/close'), closing(1))
    await refused('SESSION_NOT_FOUND', 'kim', 'POST', pathOf(id, '/rehome'), { host: 'b', reason: 'r' })

    const opened = await open(id, { restartBudget: 3 })
    expect(opened).toEqual({
      session: id,
      host: 'a',
      scope: '/srv/a',
      epoch: 1,
      state: 'open',
      crashes: 0,
      restartBudget: 3,
      logId: expect.any(String),
    })
    expect(await show(id)).toMatchObject({ state: 'open', openedBy: 'kim', unfinished: 0 })

    const closed = await close(id, 1, { drained: false, abandoned: 2 })
    expect(closed).toMatchObject({ state: 'closed', terminal: false, reason: 'restart', epoch: 1 })
    expect(await show(id)).toMatchObject({
      state: 'closed',
      terminal: false,
      reason: 'restart',
      drained: false,
      abandoned: 2,
      closedBy: 'kim',
    })

    expect(await open(id)).toMatchObject({ state: 'open', epoch: 2, restartBudget: 3 })
    expect(await show(id)).not.toHaveProperty('closedAt')
    await send(id)
    const node = await joined('a', ['/srv/a'])
    const { attempt, grant } = await node.begun('g-missing')
    const outcome = { kind: 'terminal', errorCode: 'target_session_missing' }
    expect(await node.report(attempt, grant, outcome)).toMatchObject({ ok: true, outcome: 'terminal' })
    expect(await show(id)).toMatchObject({ state: 'missing', missingAttempt: attempt })
    await refused('SESSION_MISSING', 'kim', 'POST', pathOf(id, '/close'), closing(2))
  })

  it('reported missing is opened again by an operator, and by no node', async () => {
    const id = 'its four/answers'
    await refused('SESSION_MISSING', 'a', 'PUT', pathOf(id), { host: 'a', scope: '/srv/a' })
    expect(await open(id)).toMatchObject({ state: 'open', epoch: 3 })
    expect(await show(id)).not.toHaveProperty('missingAt')
  })

  it('is opened as an operator by operators alone, and by the client where that is said', async () => {
    const id = 'said by an operator'
    const place = { host: 'a', scope: '/srv/a' }
    const { epoch } = await open(id)
    await close(id, epoch, crash)
    expect(await kim.openSession(id, place, 'kim')).toMatchObject({ state: 'open', crashes: 0 })
    await record.send('HSET', record.keys.session(id), 'state', 'missing', 'crashes', '1')
    await refused('FORBIDDEN', 'a', 'PUT', pathOf(id), { ...place, asOperator: true })
    await refused('SESSION_MISSING', 'kim', 'PUT', pathOf(id), { ...place, asOperator: false })
    for (const calls of [kim, clientOf('a'), record.hub]) {
      await expect(calls.openSession(id, place, 'kim')).rejects.toMatchObject({ code: 'SESSION_MISSING' })
    }
    const opened = await kim.openSession(id, { ...place, asOperator: true }, 'kim')
    expect(opened).toMatchObject({ state: 'open', crashes: 0 })
  })

  it('of another host is SESSION_ELSEWHERE, of another scope SCOPE_MISMATCH', async () => {
    await open('on b', { host: 'b' })
    const here = { host: 'a', scope: '/srv/a' }
    for (const who of ['a', 'kim']) {
      const problem = await refused('SESSION_ELSEWHERE', who, 'PUT', pathOf('on b'), here)
      expect(problem).toMatchObject({ status: 409, detail: expect.stringContaining('owned by host b') })
    }
    await refused('SCOPE_MISMATCH', 'b', 'PUT', pathOf('on b'), { host: 'b', scope: '/srv/b' })
    expect(await open('on b', { host: 'b' }, 'b')).toMatchObject({ host: 'b', epoch: 2 })
  })

  it('is opened, closed and seen by a node of its host and scope alone', async () => {
    const { epoch } = await open('of a node', {}, 'a')
    expect(await show('of a node')).toMatchObject({ openedBy: 'a' })
    expect(await done('a', 'GET', pathOf('of a node'))).toMatchObject({ session: 'of a node' })
    for (const [method, verb, body] of [
      ['GET', '', undefined],
      ['PUT', '', { host: 'a', scope: '/srv/a' }],
      ['POST', '/close', closing(epoch)],
    ] as const) {
      const problem = await refused('FORBIDDEN', 'b', method, pathOf('of a node', verb), body)
      expect(problem).toMatchObject({ status: 403 })
    }
    expect(await close('of a node', epoch, {}, 'a')).toMatchObject({ state: 'closed' })

    const problem = await refused('SCOPE_NOT_AUTHORISED', 'a', 'PUT', pathOf('of a scope'), {
      host: 'a',
      scope: '/srv/b',
    })
    expect(problem).toMatchObject({ status: 403, pointer: '#/scope', current: '/srv/b' })
    const foreign = await open('of a scope', { scope: '/srv/b' })
    await refused('SCOPE_NOT_AUTHORISED', 'a', 'GET', pathOf('of a scope'))
    await refused('SCOPE_NOT_AUTHORISED', 'a', 'POST', pathOf('of a scope', '/close'), closing(foreign.epoch))
  })

  it.each(['', 'srv/a', './a', '/srv/a/', '/srv//a', '//srv', '/srv/../a', '/srv/a/..', '/srv/./a', '/a\nb'])(
    'with the scope %j is a malformed request',
    async (scope) => {
      const problem = await refused('INVALID_ARGUMENT', 'kim', 'PUT', pathOf('odd'), { host: 'a', scope })
      expect(problem).toMatchObject({ status: 400, pointer: '#/scope' })
      await expect(kim.openSession('odd', { host: 'a', scope }, 'kim')).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
      })
    },
  )

  it('names its parent at its first opening, and never another', async () => {
    await open('parent')
    await open('child', { parent: 'parent' })
    expect(await show('child')).toMatchObject({ parent: 'parent' })
    const body = { host: 'a', scope: '/srv/a', parent: 'on b' }
    await refused('INVALID_ARGUMENT', 'kim', 'PUT', pathOf('child'), body)
    await refused('INVALID_ARGUMENT', 'kim', 'PUT', pathOf('self'), { ...body, parent: 'self' })
    expect(await open('child')).toMatchObject({ epoch: 2 })
    expect(await show('child')).toMatchObject({ parent: 'parent' })
  })
})

describe('a close', () => {
  it.each([
    ['disable', false],
    ['disable', undefined],
    ['removed', false],
    ['reload', true],
    ['restart', undefined],
    ['crash', true],
    ['crash', false],
  ] as const)('for %s with terminal %s is a malformed request', async (reason, terminal) => {
    const { epoch } = await open('mismatch')
    const body = closing(epoch, { reason, terminal })
    const problem = await refused('INVALID_ARGUMENT', 'kim', 'POST', pathOf('mismatch', '/close'), body)
    expect(problem).toMatchObject({ status: 400, pointer: '#/terminal' })
    const call = kim.closeSession('mismatch', body as SessionClosing, 'kim')
    await expect(call).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  it('of a crash is terminal once the budget is used up, and the count outlives openings', async () => {
    const { epoch: first } = await open('crashing', { restartBudget: 1 })
    expect(await close('crashing', first, crash)).toMatchObject({ terminal: false, crashes: 1 })
    const { epoch: second } = await open('crashing', {}, 'a')
    expect(await close('crashing', second, crash)).toMatchObject({ terminal: true, crashes: 1 })
    expect(await close('crashing', second, crash)).toMatchObject({ terminal: true, crashes: 1 })
    expect(await open('crashing')).toMatchObject({ crashes: 0, restartBudget: 1 })
  })

  it('that is repeated gets the first answer; one of an earlier opening changes nothing', async () => {
    const { epoch: first } = await open('twice')
    const answer = await close('twice', first, { reason: 'disable', terminal: true })
    const again = await close('twice', first, { reason: 'reload' })
    expect(again).toEqual({ ...answer, logId: expect.any(String) })
    const { epoch: second } = await open('twice')
    await refused('STALE_EPOCH', 'kim', 'POST', pathOf('twice', '/close'), closing(first))
    expect(await show('twice')).toMatchObject({ state: 'open', epoch: second })
  })
})

it('sessions are listed by when they were first opened, a page at a time', async () => {
  const all = await done<{ sessions: SessionView[] }>('kim', 'GET', '/v1/sessions?limit=1000')
  expect(all).not.toHaveProperty('cursor')
  const ids = all.sessions.map(({ session }) => session)
  expect(ids[0]).toBe('its four/answers')
  expect(ids.length).toBeGreaterThan(5)
  const found: string[] = []
  let cursor: string | undefined
  do {
    const page = await kim.sessionPage({ limit: 2, cursor })
    expect(page.entries.length).toBeLessThanOrEqual(2)
    found.push(...page.entries.map(({ session }) => session))
    cursor = page.cursor
  } while (cursor !== undefined)
  expect(found).toEqual(ids)
  await refused('INVALID_ARGUMENT', 'kim', 'GET', '/v1/sessions?cursor=x')
  await refused('FORBIDDEN', 'a', 'GET', '/v1/sessions')
})

it('the client speaks of sessions as the hub on the record does', async () => {
  const id = 'through the client'
  await expect(kim.session(id)).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' })
  const opening = { host: 'a', scope: '/srv/a', restartBudget: 2, parent: 'parent' }
  const opened = await kim.openSession(id, opening, 'somebody else')
  expect(opened).toMatchObject({ session: id, epoch: 1, state: 'open', restartBudget: 2 })
  expect(await kim.session(id)).toEqual(await record.hub.session(id))
  expect(await kim.session(id)).toMatchObject({ openedBy: 'kim' })
  const crashed = { epoch: 1, reason: 'crash', drained: false, abandoned: 1 } as const
  expect(await kim.closeSession(id, crashed, 'somebody else')).toMatchObject({ terminal: false, crashes: 1 })
  expect(await kim.session(id)).toMatchObject({ closedBy: 'kim', abandoned: 1 })
  const node = clientOf('c')
  await expect(node.session(id)).rejects.toMatchObject({ code: 'FORBIDDEN' })
  await expect(node.openSession('other', { host: 'c', scope: '/srv/a' }, 'x')).rejects.toMatchObject({
    code: 'SCOPE_NOT_AUTHORISED',
    current: '/srv/a',
  })
  await expect(node.rehome(id, 'c', { reason: 'r', actor: 'x' })).rejects.toMatchObject({ code: 'FORBIDDEN' })
  await expect(kim.rehome(id, 'nowhere', { reason: 'r', actor: 'x' })).rejects.toMatchObject({
    code: 'HOST_NOT_LIVE',
  })
})

describe('a rehome', () => {
  const to = (host: string) => ({ host, reason: 'a new machine' })

  it('is refused by the name of what stands against it', async () => {
    await open('moving')
    const path = pathOf('moving', '/rehome')
    await refused('HOST_NOT_LIVE', 'kim', 'POST', path, to('never-seen'))
    await joined('c', ['/srv/c'])
    await refused('SCOPE_MISMATCH', 'kim', 'POST', path, to('c'))
    await joined('b', ['/srv/b'])
    await refused('SCOPE_MISMATCH', 'kim', 'POST', path, to('b'))
    await refused('FORBIDDEN', 'a', 'POST', path, to('a'))

    await joined('b', ['/srv/a', '/srv/b'], 2)
    await send('moving')
    const node = await joined('a', ['/srv/a'], 2)
    const { attempt, grant } = await node.begun('g-moving')
    const problem = await refused('EXECUTING', 'kim', 'POST', path, to('b'))
    expect(problem).toMatchObject({ detail: expect.stringContaining(attempt) })
    await node.report(attempt, grant, { kind: 'result', result: 1 })
    expect(await rehome('moving', 'b')).toMatchObject({ host: 'b', state: 'open', epoch: 2 })
    expect(await show('moving')).toMatchObject({ host: 'b', rehomedFrom: 'a', unfinished: 0 })
    await refused('SESSION_ELSEWHERE', 'a', 'PUT', pathOf('moving'), { host: 'a', scope: '/srv/a' })
  })

  it('takes all its deliveries along: the node of the new host claims them over HTTP', async () => {
    await open('with much')
    const ids = await record.acceptMany(230, { to: [{ session: 'with much' }], conversation: 'c-much' })
    const held = ids[0] ?? ''
    await record.functions.holdDelivery(held, 'kim', 'look first')
    const { epoch } = await rehome('with much', 'b')
    const view = await show('with much')
    expect(view).toMatchObject({ host: 'b', epoch, unfinished: 230 })
    expect(view).not.toHaveProperty('movingFrom')

    const old = await joined('a', ['/srv/a'], 3)
    expect(await old.claim()).toEqual([])
    const node = await joined('b', ['/srv/a'], 3)
    const claimed = await node.claim()
    expect(claimed.map(({ id }) => id)).toEqual(ids.slice(1))
    expect(new Set(claimed.map(({ sessionEpoch }) => sessionEpoch))).toEqual(new Set([epoch]))
    expect(await kim.delivery(held)).toMatchObject({ state: 'held', host: 'b' })
    await kim.release(held, { reason: 'fine', actor: 'kim' })
    expect((await node.claim()).map(({ id }) => id)).toEqual([held])
  })

  it('never reaches a host whose principal is not authorised for the scope', async () => {
    await open('secret')
    const id = await send('secret')
    const body = { incarnation: 2, instance: 'i', scopes: ['/srv/c', '/srv/a'] }
    const problem = await refused('SCOPE_NOT_AUTHORISED', 'c', 'POST', '/v1/hosts/c/nodes/n-c', body)
    expect(problem).toMatchObject({ status: 403, pointer: '#/scopes', current: '/srv/a' })
    const node = await joined('c', ['/srv/c'], 3)
    await refused('SCOPE_MISMATCH', 'kim', 'POST', pathOf('secret', '/rehome'), to('c'))
    expect(await node.claim()).toEqual([])
    expect(await kim.delivery(id)).toMatchObject({ state: 'queued', host: 'a' })
    await kim.cancel(id, { reason: 'seen', actor: 'kim' })
  })
})

describe('resolutions', () => {
  const attemptPath = (id: string) => `/v1/attempts/${encodeURIComponent(id)}/resolve`
  const evidence = 'the log of the target'

  /** An open attempt of host `a`, on a process of its own. */
  let incarnation = 10
  async function executing() {
    incarnation += 1
    await record.accept({ to: [{ host: 'a' }] })
    const node = await joined('a', ['/srv/a'], incarnation)
    return { node, ...(await node.begun(`g-${incarnation}`)) }
  }

  it('of an attempt want evidence, and force while its executor lives', async () => {
    const { attempt, id } = await executing()
    const path = attemptPath(attempt)
    for (const body of [{ as: 'result' }, { as: 'result', evidence: '' }]) {
      const problem = await refused('INVALID_ARGUMENT', 'kim', 'POST', path, body)
      expect(problem).toMatchObject({ status: 400, pointer: '#/evidence' })
    }
    await refused('INVALID_ARGUMENT', 'kim', 'POST', path, { as: 'done', evidence })
    await refused('INVALID_ARGUMENT', 'kim', 'POST', path, {
      as: 'terminal',
      evidence,
      force: true,
      result: 1,
    })
    await refused('EXECUTING', 'kim', 'POST', path, { as: 'result', evidence })
    await refused('EXECUTING', 'kim', 'POST', path, { as: 'result', evidence, force: false })

    const body = `{"as":"result","evidence":"${evidence}","force":true,"result":{"id":130775545883395173,"f":1.10,"a":[ ]}}`
    expect(await done('kim', 'POST', path, body)).toEqual({
      id: attempt,
      state: 'delivered',
      epoch: expect.any(Number),
      outcome: 'result',
      logId: expect.any(String),
    })
    const { attempts } = await done<DeliveryView>('kim', 'GET', `/v1/deliveries/${id}`)
    expect(attempts).toMatchObject([
      {
        status: 'done',
        outcome: 'result',
        result: '{"id":130775545883395173,"f":1.10,"a":[ ]}',
        resolvedBy: 'kim',
        evidence,
      },
    ])
  })

  it('of an attempt are irreversible', async () => {
    const { attempt, grant, node, id } = await executing()
    await kim.resolveAttempt(attempt, { as: 'terminal', evidence, force: true }, 'somebody else')
    for (const as of ['terminal', 'result', 'not_sent']) {
      const body = { as, evidence, force: true }
      const problem = await refused('ALREADY_SETTLED', 'kim', 'POST', attemptPath(attempt), body)
      expect(problem).toMatchObject({ status: 409 })
    }
    const late = await node.report(attempt, grant, { kind: 'result', result: 'it ran' })
    expect(late).toMatchObject({ ok: false, code: 'ALREADY_SETTLED' })
    expect((await kim.delivery(id)).attempts).toMatchObject([
      { status: 'terminal', resolvedBy: 'kim', evidence, lateReports: 1 },
    ])
  })

  it('of an attempt need no force once its executor has ended', async () => {
    const { attempt, grant, node, id } = await executing()
    const unknown = { kind: 'outcome_unknown', errorCode: 'connection_lost' }
    expect(await node.report(attempt, grant, unknown, { ended: true })).toMatchObject({ ok: true })
    expect((await kim.delivery(id)).attempts).toMatchObject([{ endedAt: expect.any(Number) }])
    const { unknown: list } = await done<{ unknown: { id: string }[] }>('kim', 'GET', '/v1/unknown')
    expect(list.map((entry) => entry.id)).toEqual([attempt])
    const resolved = await kim.resolveAttempt(attempt, { as: 'result', evidence }, 'kim')
    expect(resolved).toMatchObject({ id: attempt, outcome: 'result', state: 'delivered' })
    // A result of which nothing is said is null, as in a report.
    expect((await kim.delivery(id)).attempts).toMatchObject([{ result: 'null' }])
    expect(await kim.unknown()).toEqual([])
  })

  it('of an attempt as not_sent queue the delivery again', async () => {
    const { attempt, id } = await executing()
    const body = { as: 'not_sent', evidence, force: true }
    const resolved = await done('kim', 'POST', attemptPath(attempt), body)
    expect(resolved).toMatchObject({ state: 'queued', outcome: 'not_sent' })
    expect(await kim.delivery(id)).toMatchObject({ state: 'queued', attempts: [{ status: 'not_sent' }] })
    await kim.cancel(id, { reason: 'seen', actor: 'kim' })
  })

  it('name attempts percent-encoded: a slash makes another path', async () => {
    const { attempt, grant, node, id } = await executing()
    const body = { as: 'result', evidence, force: true }
    await refused('ROUTE_NOT_FOUND', 'kim', 'POST', `/v1/attempts/${attempt}/resolve`, body)
    await refused('INVALID_ARGUMENT', 'kim', 'POST', attemptPath(id), body)
    await refused('ATTEMPT_NOT_FOUND', 'kim', 'POST', attemptPath(`${id}/2`), body)
    await refused('DELIVERY_NOT_FOUND', 'kim', 'POST', attemptPath('1-1.1/1'), body)
    await node.report(attempt, grant, { kind: 'result', result: 1 })
  })

  it('of a delivery in doubt queue it again or fail it, once', async () => {
    incarnation += 1
    const ids = await record.acceptMany(2, { to: [{ host: 'a' }] })
    const node = await joined('a', ['/srv/a'], incarnation)
    const items = (await node.claim()).map(({ id, epoch }) => ({ id, epoch }))
    expect(items.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
    await node.step(
      'refuse',
      items.map((item) => ({ ...item, verdict: 'unknown', reason: 'copy_in_doubt' })),
    )
    const [first = '', second = ''] = ids
    const path = (id: string) => `/v1/deliveries/${id}/resolve`
    const missing = await refused('INVALID_ARGUMENT', 'kim', 'POST', path(first), { as: 'queued' })
    expect(missing).toMatchObject({ status: 400, pointer: '#/evidence' })
    await refused('INVALID_ARGUMENT', 'kim', 'POST', path(first), { as: 'result', evidence })
    await refused('DELIVERY_NOT_FOUND', 'kim', 'POST', path('1-1.1'), { as: 'failed', evidence })

    const queued = await done('kim', 'POST', path(first), { as: 'queued', evidence })
    expect(queued).toMatchObject({ id: first, state: 'queued' })
    const failed = await kim.resolveDelivery(second, { as: 'failed', evidence }, 'somebody else')
    expect(failed).toMatchObject({ id: second, state: 'failed' })
    for (const id of ids) {
      expect(await record.fields(id)).toMatchObject({ resolved_by: 'kim', evidence })
      const again = await refused('NOT_UNKNOWN', 'kim', 'POST', path(id), { as: 'failed', evidence })
      expect(again).toMatchObject({ status: 409 })
    }
    expect((await node.claim()).map(({ id }) => id)).toEqual([first])
  })
})

describe('begin with idempotent', () => {
  it('goes on, after a restart, with the attempt that the earlier process left open', async () => {
    await record.accept({ to: [{ host: 'c' }] })
    const before = await joined('c', [], 20)
    const { id, epoch, grant, attempt } = await before.begun('g-replay')
    const after = await joined('c', [], 21)
    const [plain] = await after.step('begin', [{ id, epoch, grant }])
    expect(plain).toMatchObject({ ok: false })
    const [other] = await after.step('begin', [{ id, epoch, grant: 'another', idempotent: true }])
    expect(other).toMatchObject({ ok: false })
    const [again] = await after.step('begin', [{ id, epoch, grant, idempotent: true }])
    expect(again).toMatchObject({ ok: true, attempt, replay: true })
    expect(again?.epoch).toBeGreaterThan(epoch)
    const [repeated] = await after.step('begin', [{ id, epoch, grant, idempotent: true }])
    expect(repeated).toEqual(again)
    expect(await kim.delivery(id)).toMatchObject({
      epoch: again?.epoch,
      incarnation: 21,
      takeovers: 1,
      attempts: [{ id: attempt, incarnation: 21, replayedAt: expect.any(Number) }],
    })
    expect(await after.report(attempt, grant, { kind: 'result', result: 'twice is as once' })).toMatchObject({
      ok: true,
      outcome: 'result',
    })
  })
})
