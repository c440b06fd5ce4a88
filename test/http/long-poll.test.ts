import { connect, createServer } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ServerOptions } from '../../src/http/server.js'
import { type Answer, call, startHubServer, type TestHubServer } from '../support/http.js'
import { startProxy } from '../support/proxy.js'
import { makeRecord, type OpenRecord, openRecord, type TestNode, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// A claim that waits (contract section 10), on two hubs over one record. Every test has a host of its own.

let server: TestServer
let record: TestRecord
let one: TestHubServer
let two: TestHubServer
let host = ''
let node: TestNode
let hosts = 0

beforeAll(async () => {
  server = await startTestServer()
  // Nobody goes stale, so that nothing but what a test does wakes a claim.
  record = await makeRecord(server, 'poll', { stale_after_ms: 120_000 })
  one = await serve(record)
  two = await serve(record)
})
beforeEach(async () => {
  hosts += 1
  host = `h${hosts}`
  node = await record.join(host, 'n1')
})
afterAll(async () => {
  await one?.close()
  await two?.close()
  await record?.close()
  await server?.stop()
})

/** A slow machine is no overload here. */
function serve(over: OpenRecord, overrides: Partial<ServerOptions> = {}): Promise<TestHubServer> {
  return startHubServer(over, { limits: { lagMs: 0 }, ...overrides })
}

const longMs = 30_000
/** Far below any fallback by time: whoever is answered within it was woken. */
const soonMs = 1500
const kim = { actor: 'kim', reason: 'r' }

interface Claimed {
  readonly logId: string
  readonly more: boolean
  readonly nextAtMs?: number
  readonly code?: string
  readonly deliveries: readonly {
    readonly id: string
    readonly epoch: number
    readonly how: string
    readonly state: string
  }[]
}

interface Poll {
  readonly request?: number
  readonly waitMs?: number
  readonly signal?: AbortSignal
}

/** One claim over HTTP: the node's next request, unless told which. */
function poll(hub: { url: string }, by: TestNode, options: Poll = {}): Promise<Answer<Claimed>> {
  const { request = by.request + 1, waitMs = longMs, signal } = options
  by.request = Math.max(by.request, request)
  const body = { node: by.node, incarnation: by.incarnation, request, count: 10, waitMs }
  return call<Claimed>(hub.url, { method: 'POST', path: `/v1/hosts/${by.host}/claim`, body, signal })
}

async function metric(hub: TestHubServer, name: string): Promise<number> {
  const { text } = await call(hub.url, { path: '/metrics' })
  const line = text.split('\n').find((each) => each.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1) ?? 0)
}

const claimsOn = (hub: TestHubServer) =>
  metric(hub, 'holdfast_function_duration_seconds_count{function="hf_claim",result="ok"}')
const waitingOn = (hub: TestHubServer) => metric(hub, 'holdfast_http_waiting')

/** A poll that has found nothing, and waits now. */
async function idle(hub: TestHubServer, by: TestNode = node, options: Poll = {}) {
  const before = await claimsOn(hub)
  const answer = poll(hub, by, options)
  answer.catch(() => undefined)
  await until(async () => (await claimsOn(hub)) > before, { what: 'a claim that found nothing' })
  return { answer }
}

/** The poll's answer, which must come at once. */
async function soon(answer: Promise<Answer<Claimed>>, withinMs = soonMs): Promise<Claimed> {
  const from = performance.now()
  const { status, json } = await answer
  const tookMs = performance.now() - from
  expect(status, JSON.stringify(json)).toBe(200)
  expect(tookMs).toBeLessThan(withinMs)
  return json
}

let keys = 0

function post(hub: TestHubServer, to: string): Promise<Answer<{ deliveries: { id: string }[] }>> {
  keys += 1
  const body = { conversation: `c-${to}`, sender: 's', to: [{ host: to }], payload: { n: keys } }
  const headers = { 'idempotency-key': `posted-${keys}` }
  return call(hub.url, { method: 'POST', path: '/v1/messages', body, headers })
}

async function queued(to = host): Promise<string> {
  const { deliveries } = await record.accept({ to: [{ host: to }], conversation: `c-${to}` })
  return deliveries[0]?.id ?? ''
}

const briefly = ({ deliveries }: Claimed) => deliveries.map(({ id, epoch, how }) => ({ id, epoch, how }))

/** Times that the delivery was claimed for the first time, by the log. */
async function claimsInLog(id: string): Promise<number> {
  const entries = (await record.send('XRANGE', record.keys.log, '-', '+')) as [string, string[]][]
  return entries.filter(([, words]) => {
    const moved = words.findIndex((word, at) => word === 'ids' && words[at + 1]?.split(' ').includes(id))
    return moved >= 0 && words[moved + 3] === 'queued' && words[moved + 5] === 'claimed'
  }).length
}

describe('an idle claim is answered at once', () => {
  it('by an accept through the same hub', async () => {
    const { answer } = await idle(one)
    const posted = await post(one, host)
    expect(briefly(await soon(answer))).toEqual([{ id: posted.json.deliveries[0]?.id, epoch: 1, how: 'new' }])
  })

  it('by an accept through another hub', async () => {
    const { answer } = await idle(one)
    const posted = await post(two, host)
    expect(briefly(await soon(answer))).toMatchObject([{ id: posted.json.deliveries[0]?.id }])
  })

  it('by an accept through the SDK', async () => {
    const { answer } = await idle(one)
    const sent = await record.hub.accept({
      key: `sdk-${host}`,
      conversation: 'c',
      sender: 's',
      to: [{ host: 'elsewhere' }, { host }],
      payload: 'x',
    })
    expect(briefly(await soon(answer))).toMatchObject([{ id: sent.deliveries[1]?.id }])
  })

  it('by the lifting of a pause', async () => {
    await record.hub.pause(`host:${host}`, kim)
    const id = await queued()
    const { answer } = await idle(one)
    await record.hub.lift('pause', `host:${host}`, 'kim')
    expect(briefly(await soon(answer))).toEqual([{ id, epoch: 1, how: 'parked' }])
  })

  it('by the release of what a hold keeps, and by the lifting of the hold', async () => {
    await record.hub.hold(`conversation:c-${host}`, kim)
    const ids = [await queued(), await queued()]
    const first = await idle(one)
    expect(await record.states(ids)).toEqual(['held', 'held'])
    await record.hub.release(ids[1] ?? '', kim)
    expect(briefly(await soon(first.answer))).toMatchObject([{ id: ids[1], how: 'new' }])
    const second = await idle(two)
    await record.hub.lift('hold', `conversation:c-${host}`, 'kim')
    expect(briefly(await soon(second.answer))).toMatchObject([{ id: ids[0], how: 'new' }])
  })

  it('by another node of the host that leaves with deliveries undone', async () => {
    const other = await record.join(host, 'n2')
    const id = await queued()
    await record.claim(other)
    const { answer } = await idle(one)
    await call(two.url, { method: 'DELETE', path: `/v1/hosts/${host}/nodes/n2?incarnation=1` })
    expect(briefly(await soon(answer))).toEqual([{ id, epoch: 2, how: 'takeover' }])
  })

  it('by a delivery that is queued again', async () => {
    const other = await record.join(host, 'n2')
    const [delivered] = [await queued()]
    const [item] = await record.deliverAll(other)
    if (item === undefined) throw new Error('nothing was delivered')
    const { attempt, grant } = await record.begin(other, item)
    await record.join(host, 'n2', 2)
    const { answer } = await idle(one)
    const outcome = { kind: 'not_sent', errorCode: 'proven' } as const
    await record.functions.report({ ...other, incarnation: 2 }, [
      { id: attempt, grant, key: `${host}.not-sent`, outcome },
    ])
    expect(briefly(await soon(answer))).toMatchObject([{ id: delivered, how: 'new' }])
  })

  it.each(['pause', 'hold'] as const)('when a %s lapses, and not before', async (kind) => {
    const lapsesAt = Date.now() + 1000
    await record.hub[kind](`conversation:c-${host}`, { ...kim, until: lapsesAt })
    const id = await queued()
    const { answer } = await idle(one, node, { waitMs: 5000 })
    const claimed = await answer
    expect(briefly(claimed.json)).toMatchObject([{ id }])
    expect(Date.now() - lapsesAt).toBeGreaterThanOrEqual(0)
    expect(Date.now() - lapsesAt).toBeLessThan(soonMs)
  })
})

describe('a claim whose time is up', () => {
  it('is answered empty, and then its request is answered for good', async () => {
    const from = performance.now()
    const first = await poll(one, node, { waitMs: 250 })
    expect(performance.now() - from).toBeGreaterThanOrEqual(249)
    expect(first.json.deliveries).toEqual([])
    const id = await queued()
    for (const hub of [one, two]) {
      const again = await poll(hub, node, { request: 1 })
      expect(again.json.deliveries).toEqual([])
    }
    expect(briefly((await poll(one, node)).json)).toEqual([{ id, epoch: 1, how: 'new' }])
  })

  it('says until when nothing happens by itself', async () => {
    const lapsesAt = Date.now() + 60_000
    await record.hub.pause(`host:${host}`, { ...kim, until: lapsesAt })
    await queued()
    const { json } = await poll(one, node, { waitMs: 0 })
    expect(json.deliveries).toEqual([])
    expect(json.nextAtMs).toBeGreaterThan(Date.now())
    expect(json.nextAtMs).toBeLessThanOrEqual(lapsesAt)
  })
})

describe('a client that goes away', () => {
  it('claims nothing, and gets the deliveries from another hub under the same request', async () => {
    const gone = new AbortController()
    const { answer } = await idle(one, node, { signal: gone.signal })
    const before = await record.dump()
    gone.abort()
    await answer.catch(() => undefined)
    await until(async () => (await waitingOn(one)) === 0, { what: 'the hub noticing' })
    expect(await record.dump()).toEqual(before)

    const witness = await record.join(`${host}-witness`, 'n1')
    const watched = await idle(one, witness)
    const id = await queued()
    await queued(witness.host)
    await soon(watched.answer)
    expect(await record.states([id])).toEqual(['queued'])
    expect(briefly((await poll(two, node, { request: 1 })).json)).toEqual([{ id, epoch: 1, how: 'new' }])
  })

  it('two hundred times at once leaves nothing behind', async () => {
    const leaving = new AbortController()
    const polls = Array.from({ length: 200 }, () =>
      poll(one, node, { request: 1, signal: leaving.signal }).catch(() => undefined),
    )
    await until(async () => (await waitingOn(one)) === 200, { what: 'polls that wait' })
    leaving.abort()
    await Promise.all(polls)
    await until(async () => (await waitingOn(one)) === 0, { what: 'nobody waiting' })
  })
})

describe('one request asked twice', () => {
  it('on two hubs gets the same deliveries from both, by one claim', async () => {
    await record.hub.pause(`host:${host}`, kim)
    const ids = [await queued(), await queued(), await queued()]
    const polls = [await idle(one, node, { request: 1 }), await idle(two, node, { request: 1 })]
    await record.hub.lift('pause', `host:${host}`, 'kim')
    const [first, second] = await Promise.all(polls.map(({ answer }) => soon(answer)))
    if (first === undefined || second === undefined) throw new Error('no answer')
    expect(briefly(first)).toEqual(ids.map((id) => ({ id, epoch: 1, how: 'parked' })))
    expect(second.deliveries).toEqual(first.deliveries)
    expect(await Promise.all(ids.map(claimsInLog))).toEqual([1, 1, 1])
    await record.checkInvariants()
  })

  it('on one hub many times gets them many times', async () => {
    const polls = await Promise.all(
      Array.from({ length: 20 }, () => poll(one, node, { request: 1, waitMs: 0 })),
    )
    expect(polls.every(({ json }) => json.deliveries.length === 0)).toBe(true)
    const waits = Array.from({ length: 20 }, () => poll(one, node, { request: 2 }))
    await until(async () => (await waitingOn(one)) === 20, { what: 'polls that wait' })
    const id = await queued()
    for (const wait of waits) expect(briefly(await soon(wait))).toEqual([{ id, epoch: 1, how: 'new' }])
    expect(await claimsInLog(id)).toBe(1)
  })

  it('after the client moved on is refused, and claims nothing', async () => {
    await queued()
    const first = await poll(one, node)
    expect(first.json.deliveries).toHaveLength(1)
    await queued()
    expect((await poll(two, node)).json.deliveries).toHaveLength(1)
    await queued()
    const before = await record.dump()
    for (const hub of [one, two]) {
      const late = await poll(hub, node, { request: 1 })
      expect([late.status, late.json.code]).toEqual([409, 'STALE_REQUEST'])
    }
    expect(await record.dump()).toEqual(before)
  })

  it('whose first copy still waits when the client has moved on: that copy claims nothing', async () => {
    const delayed = await idle(one, node, { request: 1 })
    // Answered empty by the other hub: the client goes on.
    expect((await poll(two, node, { request: 1, waitMs: 0 })).json.deliveries).toEqual([])
    const next = await idle(two, node, { request: 2 })
    const id = await queued()
    expect(briefly(await soon(next.answer))).toEqual([{ id, epoch: 1, how: 'new' }])
    const late = await delayed.answer
    expect([late.status === 200 ? late.json.deliveries : late.json.code]).not.toContain(id)
    if (late.status === 200) expect(late.json.deliveries).toEqual([])
    else expect(late.json.code).toBe('STALE_REQUEST')
    expect(await claimsInLog(id)).toBe(1)
  })
})

/** Passes requests on to a hub; at the first byte of an answer it cuts the client off instead. */
async function startDeafLine(to: TestHubServer) {
  const target = new URL(to.url)
  let cut: () => void = () => undefined
  const isCut = new Promise<void>((resolve) => {
    cut = resolve
  })
  const listener = createServer((client) => {
    const hub = connect(Number(target.port), target.hostname)
    client.pipe(hub)
    client.on('error', () => undefined)
    hub.on('error', () => undefined)
    hub.once('data', () => {
      client.destroy()
      hub.destroy()
      cut()
    })
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const address = listener.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return { url: `http://127.0.0.1:${port}`, isCut, close: () => listener.close() }
}

describe('faults.md 14: the reply to a claim is lost', () => {
  it('between hub and client: the repeat gets the same deliveries, and they go on', async () => {
    const line = await startDeafLine(one)
    const lost = poll(line, node).catch((error: unknown) => error)
    await until(async () => (await waitingOn(one)) === 1, { what: 'a poll that waits' })
    const id = await queued()
    await line.isCut
    expect(await lost).toBeInstanceOf(Error)
    line.close()
    expect(await record.fields(id)).toMatchObject({ state: 'claimed', epoch: '1' })
    for (const hub of [two, one]) {
      const again = await poll(hub, node, { request: 1 })
      expect(briefly(again.json)).toEqual([{ id, epoch: 1, how: 'new' }])
    }
    expect(await claimsInLog(id)).toBe(1)
    const items = [{ id, epoch: 1 }]
    for (const step of ['mirror', 'ack']) {
      const body = { node: 'n1', incarnation: 1, items }
      const done = await call(two.url, { method: 'POST', path: `/v1/hosts/${host}/${step}`, body })
      expect(done.json).toMatchObject({ results: [{ ok: true }] })
    }
    await record.checkInvariants()
  })

  it('between Redis and hub: the client is told to repeat, and gets the same deliveries', async () => {
    const proxy = await startProxy(server.port)
    const behind = await serve(record, { redis: proxy.url })
    const cut = proxy.cutAfterReply((words) => words[1] === 'hf_claim' && words[4] === host)
    const id = await queued()
    const lost = await poll(behind, node)
    await cut
    expect([lost.status, lost.json.code]).toEqual([503, 'DEADLINE_EXCEEDED'])
    expect(lost.headers.get('retry-after')).toBe('1')
    for (const hub of [behind, two]) {
      const again = await poll(hub, node, { request: 1 })
      expect(briefly(again.json)).toEqual([{ id, epoch: 1, how: 'new' }])
    }
    expect(await claimsInLog(id)).toBe(1)
    await behind.close()
    await proxy.close()
  })
})

const clients = async () => String(await record.send('CLIENT', 'LIST')).split('\n')

it('500 idle polls on 500 hosts: one connection waits, an accept wakes its host alone, all end with the hub', async () => {
  const crowded = await serve(record)
  const nodes = await Promise.all(Array.from({ length: 500 }, (_, at) => record.join(`crowd-${at}`, 'n1')))
  const connected = (await clients()).length
  const polls = nodes.map((each) => poll(crowded, each))
  await until(async () => (await claimsOn(crowded)) === 500, {
    timeoutMs: 30_000,
    everyMs: 100,
    what: 'every poll waiting',
  })
  expect((await clients()).length).toBe(connected)
  expect((await clients()).filter((line) => line.includes(' cmd=xread '))).toHaveLength(3)

  const ids = [await queued('crowd-17'), await queued('crowd-418')]
  const answers = await Promise.all([polls[17], polls[418]])
  expect(answers.map((each) => each?.json.deliveries[0]?.id)).toEqual(ids)
  expect(await claimsOn(crowded)).toBe(502)

  const from = performance.now()
  const closed = crowded.close()
  const rest = await Promise.all(polls.filter((_, at) => at !== 17 && at !== 418))
  const tookMs = performance.now() - from
  await closed
  expect(rest.filter(({ status, json }) => status !== 200 || json.deliveries.length > 0)).toEqual([])
  // Far below the ten seconds for which a shutdown waits: they were answered, not cut off.
  expect(tookMs).toBeLessThan(3000)
  expect(performance.now() - from).toBeLessThan(4000)

  // They were answered: what comes later belongs to a later request.
  const [first] = nodes
  if (first === undefined) throw new Error('no node')
  await queued(first.host)
  expect((await poll(one, first, { request: 1 })).json.deliveries).toEqual([])
  expect((await poll(one, first)).json.deliveries).toHaveLength(1)
})

describe('the hub reads the log through one connection, and', () => {
  const soonAfterMs = 2500

  it('when that is cut, polls still get what is accepted afterwards', async () => {
    const { answer } = await idle(one)
    const tails = (await clients()).filter((line) => line.includes(' name=holdfast-tail '))
    expect(tails.length).toBeGreaterThanOrEqual(2)
    for (const line of tails) await record.send('CLIENT', 'KILL', 'ID', /^id=(\d+)/.exec(line)?.[1] ?? '')
    const id = await queued()
    expect(briefly(await soon(answer, soonAfterMs))).toMatchObject([{ id }])
  })

  it('when the log is deleted, polls still get what is accepted afterwards', async () => {
    const { answer } = await idle(one)
    await record.send('DEL', record.keys.log)
    const id = await queued()
    expect(briefly(await soon(answer, soonAfterMs))).toMatchObject([{ id }])
  })

  it('when the log is deleted, a poll that comes then does not spin', async () => {
    const late = await serve(record)
    await queued(`${host}-other`)
    await record.send('DEL', record.keys.log)
    const claims = await claimsOn(late)
    expect((await poll(late, node, { waitMs: 600 })).json.deliveries).toEqual([])
    expect((await claimsOn(late)) - claims).toBeLessThan(20)
    await late.close()
  })

  it('when the log goes on at lower ids, polls still get what is accepted afterwards', async () => {
    const witness = await record.join(`${host}-witness`, 'n1')
    const ahead = `${Date.now() + 3_600_000}-0`
    const watched = await idle(one, witness)
    const claims = await claimsOn(one)
    await record.send('XADD', record.keys.log, ahead, 'verb', 'test', 'actor', 't', 'hosts', witness.host)
    await until(async () => (await claimsOn(one)) > claims, { what: 'the hub reading that far' })
    const { answer } = await idle(one)
    await record.send('DEL', record.keys.log)
    const id = await queued()
    expect(briefly(await soon(answer, soonAfterMs))).toMatchObject([{ id }])
    await queued(witness.host)
    await soon(watched.answer, soonAfterMs)
  })

  it('when the log was trimmed past what it read, polls still get what was accepted then', async () => {
    const proxy = await startProxy(server.port)
    const behind = await serve(record, { redis: proxy.url })
    const { answer } = await idle(behind)
    proxy.blackhole(true)
    // The read under way ends with the first entry; the second is gone before the next read.
    await queued(`${host}-other`)
    const id = await queued()
    const filler = Array.from({ length: 1200 }, () => [
      'XADD',
      record.keys.log,
      'MAXLEN',
      1000,
      '*',
      'verb',
      'test',
      'actor',
      't',
    ])
    await record.store.pipeline(filler)
    proxy.blackhole(false)
    expect(briefly(await soon(answer, soonAfterMs))).toMatchObject([{ id }])
    await behind.close()
    await proxy.close()
  })
})

it('faults.md 3: FLUSHALL ends the wait; after init and a join work comes again', async () => {
  const lost = await startTestServer()
  const other = await makeRecord(lost, 'lost')
  const hub = await serve(other)
  const before = await other.join('a', 'n1')
  const { answer } = await idle(hub, before)
  lost.cli('FLUSHALL')
  const refused = await poll(hub, before, { waitMs: 0 })
  expect([refused.status, refused.json.code, refused.headers.get('retry-after')]).toEqual([
    503,
    'STORE_UNKNOWN',
    '5',
  ])
  expect(lost.cli('DBSIZE')).toBe('0')
  await other.functions.init('again', true)
  const ended = await answer
  expect([503, 409]).toContain(ended.status)
  expect(['STORE_UNKNOWN', 'NOT_JOINED']).toContain(ended.json.code)

  const anew = await openRecord(lost, { name: 'lost', init: false })
  const joined = await anew.join('a', 'n1', 2)
  const next = await idle(hub, joined)
  const { deliveries } = await anew.accept()
  expect(briefly(await soon(next.answer, 2500))).toMatchObject([{ id: deliveries[0]?.id, how: 'new' }])
  await hub.close()
  await anew.close()
  await other.close()
  await lost.stop()
})
